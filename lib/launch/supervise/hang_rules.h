// Decides from samples of the ranks whether a run still makes progress. Uses no clock, processes or files.
//
// A run hangs when one of these holds:
//   any program   for `silence`, no log has grown, and no rank, and no process that left a rank's process tree, has worked (used
//                 processor time, read or written files), sent a beat or ended; or one rank has been stopped for that long
//   log rules     no line has matched within the rule's time
//   job files     a rank that trains has made no step for max(30 s, 5 x the 99th percentile of the step times so far),
//                 or has waited for a disk for 5 min. While one rank waits for a disk, the others are not late.
// While a debugger holds a rank, no rule applies. Over several nodes, silence and log rules take all nodes together.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/supervise/signs_of_life.h"

namespace fleetrun::launch {

// Of a process tree, so far.
struct Work {
  Clock::duration cpu_time{};
  std::uint64_t bytes_read = 0, bytes_written = 0;
};

struct RankSample {
  bool running = false;
  bool stopped = false;         // by SIGSTOP
  std::uint64_t log_bytes = 0;  // written so far
  Work work;                    // of its process tree
  bool training = false;        // the embedded runtime says so; step and beat are valid
  std::uint64_t step = 0;
  std::int64_t beat = 0;  // changes with each sign of life
  bool on_disk = false;   // it trains, and waits to read data or for a write to end
  bool debugged = false;  // a debugger holds it
};

struct HangSample {
  std::vector<RankSample> ranks;
  Work detached;  // of processes that ranks started and that are in no rank's process tree any more
  std::vector<bool> rules_matched;  // since the last sample
  SignsOfLife elsewhere;            // of the other nodes
};

struct NamedTime {
  std::string name;
  Clock::duration time{};
};

struct HangOptions {
  int first_rank = 0;                         // the number of rank 0 of this node, for messages
  std::optional<Clock::duration> silence;     // --hang_timeout; none: silence is not a hang
  bool steps = false;                         // the ranks have progress pages
  std::optional<Clock::duration> step_bound;  // --hang_timeout; none: computed from the step times so far
  Clock::duration least_step_bound = std::chrono::seconds(30);  // shorter pauses are normal
  Clock::duration first_step_bound = std::chrono::minutes(5);   // until the first step time is known
  Clock::duration disk_bound = std::chrono::minutes(5);         // a file server takes minutes to restart
  std::vector<NamedTime> rules;
  Clock::duration look_every = std::chrono::seconds(1);

  bool any() const { return silence || steps || !rules.empty(); }
};

class HangRules {
 public:
  HangRules(HangOptions options, int ranks);

  // Why the run hangs; none: it does not hang so far.
  std::optional<std::string> look(const HangSample& sample, TimePoint now);
  void forgive() { last_look_.reset(); }  // all clocks start anew with the next look
  void count_from(int first_rank) { options_.first_rank = first_rank; }  // nodes have come or gone
  SignsOfLife signs() const;                                             // as of the last look

 private:
  struct RankMemory {
    RankSample last;
    TimePoint active, not_stopped, stepped, alive;
  };

  void begin(const HangSample& sample, TimePoint now);
  void remember(RankMemory& memory, const RankSample& sample, TimePoint now);
  bool waits_for_disk(TimePoint now) const;
  void excuse_others(TimePoint now);
  std::optional<std::string> judge_silence(const SignsOfLife& elsewhere, TimePoint now) const;
  std::optional<std::string> judge_rules(const HangSample& sample, TimePoint now);
  std::optional<std::string> judge_steps(TimePoint now) const;
  Clock::duration step_bound() const;
  Clock::duration disk_bound() const;

  HangOptions options_;
  std::vector<RankMemory> ranks_;
  std::vector<TimePoint> matched_;          // per rule
  std::deque<Clock::duration> step_times_;  // the latest ones, of all ranks
  std::optional<TimePoint> last_look_;
  Work detached_;  // as of the last look
  TimePoint detached_active_;
  bool debugged_ = false;  // as of the last look
};

}  // namespace fleetrun::launch
