// What a job's strategy comes to among so many ranks.
#pragma once
#include <string>
#include <vector>

#include "job/job_spec.h"

namespace fleetrun::job {

struct Ranks {
  int all = 1;
  int of_node = 1;  // on each node
};

struct SettledStrategy {
  StrategySpec strategy;
  std::vector<std::string> notes;  // what was adjusted
};

// Throws Error(config) for groups that these ranks cannot form. Launcher and worker come to the same.
SettledStrategy settle_strategy(const StrategySpec& strategy, const Ranks& ranks);

}  // namespace fleetrun::job
