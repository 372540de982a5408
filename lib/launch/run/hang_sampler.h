// Measures what the ranks do and asks the HangRules what they think of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/cli/log_rule.h"
#include "launch/logs/growing_file.h"
#include "launch/logs/log_folder.h"
#include "launch/run/run_plan.h"
#include "launch/supervise/hang_rules.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

class HangSampler {
 public:
  HangSampler(const RunPlan& plan, const LogFolder& logs);  // both outlive it

  // How often look() is to be called; none: there is nothing to look at.
  std::optional<Clock::duration> interval() const;
  // Why the run hangs; none: it does not, so far. `elsewhere` is what the ranks of the other nodes did.
  std::optional<std::string> look(const RunState& state, const SignsOfLife& elsewhere, TimePoint now);
  SignsOfLife signs() const { return rules_.signs(); }  // of the ranks here, as of the last look

  void follow_new_logs();               // a new attempt has begun
  void forgive() { rules_.forgive(); }  // time has passed in which the ranks could not work

 private:
  struct LogTail {  // what the log rules have not seen yet
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
