// The stacks of a Python rank that has registered its faulthandler for FLEETRUN_STACK_SIGNAL: the rank writes them to its log when it
// gets the signal, whatever its interpreter is doing, and from there they are copied.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"

namespace fleetrun::launch {

class StacksBySignal {
 public:
  // `log` is open for reading. Calls `on_end` from the loop when the log has stopped growing, or after a few seconds.
  StacksBySignal(EventLoop& loop, pid_t pid, UniqueFd log, UniqueFd output, std::function<void()> on_end);
  StacksBySignal(const StacksBySignal&) = delete;
  StacksBySignal& operator=(const StacksBySignal&) = delete;

 private:
  void look();
  void finish();
  void look_later();

  UniqueFd log_, output_;
  std::function<void()> on_end_;
  off_t before_ = 0, seen_ = 0;  // sizes of the log
  TimePoint deadline_;
  Timer timer_;
};

}  // namespace fleetrun::launch
