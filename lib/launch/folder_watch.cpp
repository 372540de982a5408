#include "launch/folder_watch.h"

#include <fcntl.h>

#include <chrono>
#include <csignal>

#include "launch/signals.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPollPause = std::chrono::milliseconds(100);  // without dnotify; a delay that nobody minds

}  // namespace

FolderWatch::FolderWatch(EventLoop& loop, const std::string& folder, std::function<void()> on_change)
    : loop_(loop), on_change_(std::move(on_change)) {
  block_signals({SIGIO});
  folder_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_ || ::fcntl(folder_.get(), F_NOTIFY, DN_MODIFY | DN_MULTISHOT) != 0) {
    look_again_later();
    return;
  }
  signals_ = open_signal_fd({SIGIO});
  loop_.watch_readable(signals_.get(), [this] {
    read_signals(signals_.get());
    on_change_();
  });
}

FolderWatch::~FolderWatch() {
  if (signals_) loop_.forget(signals_.get());
}

void FolderWatch::look_again_later() {
  loop_.call_at(Clock::now() + kPollPause, [this] {
    on_change_();
    look_again_later();
  });
}

}  // namespace fleetrun::launch
