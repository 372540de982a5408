// Starts fleetrun on the other nodes of a run, from a process of its own. That process is a child of the front process, because the middle
// process ends all its children with each attempt.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/system/environment.h"
#include "base/system/unique_fd.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/schedulers/allocation.h"
#include "launch/starters/agent_order.h"
#include "launch/starters/start_commands.h"

namespace fleetrun::launch {

// Everything that is decided before the other nodes start.
struct StartPlan {
  std::vector<StartCommand> commands;
  AgentOrder order;
  std::string order_file;  // for starters that forward no input; "": the order goes over standard input
  Environment environment;
  Clock::duration patience;  // of the nodes, from their order to end to their end
};

// `words` are those of this fleetrun, without its name. Throws Error(not_found) when the starter is not on PATH.
StartPlan plan_start(const LaunchOptions& options, const Allocation& allocation,
                     const std::vector<std::string>& words, const Environment& environment);

class OtherNodes {
 public:
  explicit OtherNodes(const StartPlan& plan);  // Throws Error(os).
  // Waits until the starters have ended, or kills those that hang: after some seconds, or when another signal asks for it. When the process
  // that made this object is gone, however it ended, the nodes end, too.
  ~OtherNodes();
  OtherNodes(const OtherNodes&) = delete;
  OtherNodes& operator=(const OtherNodes&) = delete;

  int news_fd() const { return news_.get(); }  // a line for each StartProblem
  const std::string& order_file() const { return order_file_; }
  // The run has ended on all nodes, so starters that still run after some seconds hang. Otherwise the nodes get their time to end.
  void run_has_ended() { run_ended_ = true; }

 private:
  void write(char word) const;
  void wait_for_starters() const;

  const std::string order_file_;  // which holds the key of the run
  UniqueFd life_;                 // while it is open in any process, the other nodes run
  UniqueFd news_;
  pid_t pid_ = -1;
  bool run_ended_ = false;
};

}  // namespace fleetrun::launch
