// Measures what the ranks do, and asks the HangRules whether the run hangs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/cli/flags/log_rule.h"
#include "launch/logs/growing_file.h"
#include "launch/logs/log_folder.h"
#include "launch/run/run_plan.h"
#include "launch/supervise/hang_rules.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

// Throws Error(os) if --hang_timeout is given, and no /proc shows whether the ranks work.
void check_hang_timeout(const LaunchOptions& options);

class HangSampler {
 public:
  HangSampler(const RunPlan& plan, const LogFolder& logs);  // both outlive it

  // How often to call look(); none: no hang rule applies.
  std::optional<Clock::duration> interval() const;
  // Why the run hangs; none: it does not hang so far. `elsewhere`: what the ranks of other nodes did.
  std::optional<std::string> look(const RunState& state, const SignsOfLife& elsewhere, TimePoint now);
  SignsOfLife signs() const { return rules_.signs(); }  // of the ranks here, as of the last look

  void follow_new_logs();               // call it when an attempt has begun
  void forgive() { rules_.forgive(); }  // the ranks were suspended: restarts all clocks

 private:
  struct LogTail {  // the part of a log that the log rules have not seen yet
    GrowingFile file;
    std::string unfinished;
  };

  RankSample sample_rank(std::size_t rank, const RunState& state) const;
  void match_rules(LogTail& tail, std::vector<bool>& matched) const;

  const RunPlan& plan_;
  const LogFolder& logs_;
  HangOptions options_;
  std::vector<LogRule> log_rules_;  // in the order of options_.rules
  HangRules rules_;
  std::vector<std::vector<LogTail>> tails_;  // of each rank
};

}  // namespace fleetrun::launch
