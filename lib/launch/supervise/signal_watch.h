// Turns the signals that people and programs send to fleetrun into events. On SIGCHLD, reaps orphans.
#pragma once
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/process/signals.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

class SignalWatch {
 public:
  // Blocks the signals that it handles. Never reaps `workers`. All outlive it.
  SignalWatch(EventLoop& loop, EventQueue& events, const std::vector<WorkerRecord>& workers);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Pushes the signals that have arrived into the queue. True: one of them asks the run to end.
  bool take();

 private:
  void reap() const;

  EventLoop& loop_;
  EventQueue& events_;
  const std::vector<WorkerRecord>& workers_;
  UniqueFd signals_;
  SignalRepeats repeats_;
};

}  // namespace fleetrun::launch
