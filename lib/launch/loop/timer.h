// One callback at one time, which the owner can move or cancel.
#pragma once
#include <memory>

#include "launch/loop/clock.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

class Timer {
 public:
  explicit Timer(EventLoop& loop);
  ~Timer();  // like cancel()
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void call_at(TimePoint time, EventLoop::Callback callback);  // instead of what was set before
  void cancel();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fleetrun::launch
