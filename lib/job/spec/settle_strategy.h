// The effect of a job's strategy for a number of ranks: the one place that refuses or adjusts a setting
// (reference: PaddlePaddle's graph_execution_optimizer.py and build_strategy.cc).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"

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

// Of a settled strategy: whether sharding has several groups of ranks. Then each communicator of all ranks has two others beside it:
// one of the ranks of a group, and one of the ranks that have the same place in their groups. Communicator i of the groups is
// number nccl_comm_num + i, that of the places number 2 * nccl_comm_num + i.
bool shards_in_groups(const StrategySpec& strategy);
int communicator_count(const StrategySpec& strategy);

}  // namespace fleetrun::job
