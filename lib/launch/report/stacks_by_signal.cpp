#include "launch/report/stacks_by_signal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

constexpr auto kLookPause = std::chrono::milliseconds(100);  // between looks at the log
constexpr auto kLogPatience = std::chrono::seconds(5);
constexpr off_t kMostCopied = 1 << 20;  // bytes; what the rank prints meanwhile is copied, too

off_t size_of(const UniqueFd& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 ? facts.st_size : 0;
}

}  // namespace

StacksBySignal::StacksBySignal(EventLoop& loop, pid_t pid, UniqueFd log, UniqueFd output,
                               std::function<void()> on_end)
    : log_(std::move(log)),
      output_(std::move(output)),
      on_end_(std::move(on_end)),
      before_(size_of(log_)),
      seen_(before_),
      deadline_(Clock::now() + kLogPatience),
      timer_(loop) {
  ::kill(pid, kStackSignal);
  look_later();
}

void StacksBySignal::look_later() {
  timer_.call_at(Clock::now() + kLookPause, [this] { look(); });
}

void StacksBySignal::look() {
  const off_t size = size_of(log_);
  const bool complete = size > before_ && size == seen_;
  seen_ = size;
  if (!complete && Clock::now() < deadline_) return look_later();
  finish();
}

void StacksBySignal::finish() {
  std::string text(static_cast<std::size_t>(std::clamp<off_t>(seen_ - before_, 0, kMostCopied)), '\0');
  const ssize_t count = ::pread(log_.get(), text.data(), text.size(), before_);
  if (count > 0) [[maybe_unused]]
    const ssize_t written = ::write(output_.get(), text.data(), static_cast<std::size_t>(count));
  const auto on_end = std::move(on_end_);  // which may end this object
  on_end();
}

}  // namespace fleetrun::launch
