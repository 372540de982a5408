// The effect of a job's strategy for a number of ranks: the one place that refuses or adjusts a setting
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
// get the same result. `variables`: the worker's; FLAGS_fuse_parameter_memory_size and _groups_size apply where the job
// sets nothing.
SettledStrategy settle_strategy(const StrategySpec& strategy, const Ranks& ranks,
                                const Variables& variables = nullptr);

}  // namespace fleetrun::job
