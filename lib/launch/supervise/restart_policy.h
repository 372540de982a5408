// Whether and when to start all ranks again after a failure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/process/usual_waits.h"

namespace fleetrun::launch {

struct RestartPolicy {
  int most = 0;                                      // --max_restart
  std::optional<Clock::duration> window;             // --restart_window: older restarts do not count
  Clock::duration first_delay = kUsualRestartDelay;  // doubled with each restart without progress
  Clock::duration longest_delay = std::chrono::seconds(60);
  Clock::duration settled = std::chrono::seconds(60);  // an attempt that ran this long has made progress
  std::vector<int> never_after;                        // --no_restart_on: exit codes
};

// False for a failure that would repeat: base/error/exit_codes.def, and the user's own codes.
bool worth_restarting(const RestartPolicy& policy, int exit_code);

// The line of a run that ends, although it could go on after another restart.
std::string no_restart_is_left(const RestartPolicy& policy);

// What another node counted before.
struct EarlierRestarts {
  int count = 0;
  std::vector<TimePoint> began = {};  // of the newest of them: those that the window may still count
};

class RestartCounter {
 public:
  explicit RestartCounter(RestartPolicy policy, EarlierRestarts earlier = {})
      : policy_(std::move(policy)),
        untimed_(earlier.count - static_cast<int>(earlier.began.size())),
        began_(std::move(earlier.began)) {}

  // An attempt that ran for `lived` has failed `now`. `step` is the highest that a rank of ours has done; none: it is not
  // known, and then the time counts. Returns the delay until the next attempt; none: there is no next one.
  std::optional<Clock::duration> after(int exit_code, Clock::duration lived, TimePoint now,
                                       std::optional<std::int64_t> step = {});
  // A node was lost, which says nothing about the program: the next attempt need not wait. False: there is no next one.
  bool after_loss(TimePoint now);
  // With another number of ranks an epoch has another number of steps, so that steps cannot be compared.
  void forget_steps() { best_step_.reset(); }
  int restarts() const { return untimed_ + static_cast<int>(began_.size()); }
  // No restart is left `now`, or none inside the window.
  bool has_spent_all(TimePoint now) const;
  // How long ago the restarts inside the window were, the newest last. Without a window none: their number says all.
  std::vector<Clock::duration> ages_inside_window(TimePoint now) const;
  void forbid() { forbidden_ = true; }  // we were asked to end
  bool forbidden() const { return forbidden_; }
  // There were restarts, and the last attempt made no progress either.
  bool crash_loop() const { return crash_loop_; }

 private:
  bool is_inside_window(TimePoint began, TimePoint now) const;
  bool made_progress(Clock::duration lived, std::optional<std::int64_t> step);

  RestartPolicy policy_;
  int untimed_ = 0;               // restarts that another node counted and that are older than the window
  std::vector<TimePoint> began_;  // by restart
  int fruitless_ = 0;             // attempts in a row that made no progress
  std::optional<std::int64_t> best_step_;  // of the attempts before
  bool crash_loop_ = false;
  bool forbidden_ = false;
};

}  // namespace fleetrun::launch
