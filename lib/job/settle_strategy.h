// What a job's strategy comes to among so many ranks: the one place for what is refused and what is adjusted
// (reference: PaddlePaddle's graph_execution_optimizer.py and build_strategy.cc).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/job_spec.h"

namespace fleetrun::job {

struct Ranks {
  int all = 1;
  int of_node = 1;   // on each node
  bool gpu = false;  // each has one
};

struct SettledStrategy {
  StrategySpec strategy;
  std::vector<std::string> notes;  // what was adjusted
};

using Variables = std::function<std::optional<std::string>(const std::string& name)>;  // of the environment

// Throws Error(config) for groups that these ranks cannot form and for FLAGS_* that are not numbers. Launcher and worker
// come to the same. `variables`: the worker's; FLAGS_fuse_parameter_memory_size and _groups_size hold where the job
// says nothing.
SettledStrategy settle_strategy(const StrategySpec& strategy, const Ranks& ranks,
                                const Variables& variables = nullptr);

}  // namespace fleetrun::job
