#include "launch/logs/folder_watch.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPollPause = std::chrono::milliseconds(100);  // without dnotify; a delay that nobody minds

}  // namespace

FolderWatch::FolderWatch(EventLoop& loop, const std::string& folder, Clock::duration pause,
                         std::function<void()> on_change)
    : loop_(loop), pause_(pause), on_change_(std::move(on_change)), look_(loop) {
  block_signals({SIGIO});
  folder_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!watch()) {
    look_again_after(std::max<Clock::duration>(kPollPause, pause_));
    return;
  }
  signals_ = open_signal_fd({SIGIO});
  loop_.watch_readable(signals_.get(), [this] {
    read_signals(signals_.get());
    on_change_();
    look_again_after(pause_);
  });
}

FolderWatch::~FolderWatch() {
  if (signals_) loop_.forget(signals_.get());
}

void FolderWatch::follow(const std::string& folder) {
  folder_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  look_again_after(pause_);
}

// For one change.
bool FolderWatch::watch() { return folder_ && ::fcntl(folder_.get(), F_NOTIFY, DN_MODIFY) == 0; }

void FolderWatch::look_again_after(Clock::duration pause) {
  look_.call_at(Clock::now() + pause, [this, pause] {
    const bool watching = watch();  // before the look, so that nothing falls between
    on_change_();
    if (!watching || !signals_) look_again_after(pause);
  });
}

}  // namespace fleetrun::launch
