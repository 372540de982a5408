// Whether and when to start all ranks again after a failure.
#pragma once
#include <optional>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct RestartPolicy {
  int most = 0;                                           // --max_restart
  Clock::duration first_delay = std::chrono::seconds(1);  // doubled with each restart without progress
  Clock::duration longest_delay = std::chrono::seconds(60);
  Clock::duration settled = std::chrono::seconds(60);  // an attempt that ran this long has made progress
};

// False for a failure that would repeat: base/error/exit_codes.def.
bool worth_restarting(int exit_code);

class RestartCounter {
 public:
  explicit RestartCounter(RestartPolicy policy) : policy_(policy) {}

  // An attempt that ran for `lived` has failed. Returns the delay until the next one; none: there is no next one.
  std::optional<Clock::duration> after(int exit_code, Clock::duration lived);
  // A node was lost, which says nothing about the program: the next attempt need not wait. False: there is no next one.
  bool after_loss();
  int restarts() const { return restarts_; }
  void forbid() { forbidden_ = true; }  // we were asked to end
  bool forbidden() const { return forbidden_; }
  // There were restarts, and the last attempt made no progress either.
  bool crash_loop() const { return crash_loop_; }

 private:
  RestartPolicy policy_;
  int restarts_ = 0;
  int fruitless_ = 0;  // attempts in a row that made no progress
  bool crash_loop_ = false;
  bool forbidden_ = false;
};

}  // namespace fleetrun::launch
