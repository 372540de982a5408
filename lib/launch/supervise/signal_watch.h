// Turns the signals that people and programs send to fleetrun into events. On SIGCHLD, reaps orphans.
#pragma once
#include "base/system/unique_fd.h"
#include "launch/process/signals.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

class SignalWatch {
 public:
  // Blocks the signals that it handles. Never reaps the leaders of `workers`. All outlive it.
  SignalWatch(EventLoop& loop, EventQueue& events, ProcessGroup& workers);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Pushes the signals that have arrived into the queue. True: one of them asks the run to end.
  bool take();

 private:
  void reap() const;

  EventLoop& loop_;
  EventQueue& events_;
  ProcessGroup& workers_;
  UniqueFd signals_;
  SignalRepeats repeats_;
};

}  // namespace fleetrun::launch
