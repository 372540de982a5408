// Decides which ranks of a job are slow. Uses no clock, processes or files.
//
// In synchronous training every step takes all ranks equally long, because the fast ranks wait for the slow one. So a rank is
// measured by its own time per step: waiting for data and computing, without the time in which it only communicates.
// The rules divide the time into windows. A window ends when a quarter of `after` has passed and every rank has done 5 steps.
// A rank is slow in a window when its own time exceeds the median of all ranks
//   by 20 %,
//   by 10 % of the step, since a smaller difference costs less than that, and
//   by three times the median deviation of the ranks from their median, which is what noise on a shared machine looks like.
// A rank that is slow in four windows in a row is a straggler.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/run/time_use.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// What a rank has done so far.
struct StepTimes {
  bool training = false;
  std::uint64_t steps = 0;
  std::int64_t data_ns = 0, compute_ns = 0, communication_ns = 0;
};

struct Straggler {
  int rank = 0;
  TimeUse phase = TimeUse::compute;  // in which it loses more time: compute or data
  double own_ms = 0, median_ms = 0;  // own time per step: its own, and that of the median rank
  double factor() const { return own_ms / median_ms; }
};

// The ranks that were slow between two moments. Both lists have one entry for each rank.
std::vector<Straggler> slow_ranks(const std::vector<StepTimes>& before, const std::vector<StepTimes>& now);

class StragglerRules {
 public:
  // The shortest time in which a rank can become a straggler.
  explicit StragglerRules(Clock::duration after) : after_(after) {}

  // The stragglers that are new since the last call. The ranks of a run keep their place in the list.
  std::vector<Straggler> look(const std::vector<StepTimes>& ranks, TimePoint now);
  void begin_attempt();

 private:
  void open_window(const std::vector<StepTimes>& ranks, TimePoint now);
  bool window_is_over(const std::vector<StepTimes>& ranks, TimePoint now) const;

  const Clock::duration after_;
  std::optional<TimePoint> opened_;  // the present window; none: there is none yet
  std::vector<StepTimes> at_opening_;
  std::vector<int> slow_windows_;  // of each rank: how many windows in a row it has been slow
  std::set<int> told_;             // ranks that this attempt has found
};

}  // namespace fleetrun::launch
