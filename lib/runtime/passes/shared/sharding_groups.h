// The groups of consecutive ranks whose members share the updates of one set of parameters: with strategy.sharding those of
// sharding_degree ranks, with reduce_strategy Reduce one group of all ranks.
#pragma once
#include <optional>

#include "job/spec/settle_strategy.h"
#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime {

struct ShardingGroups {
  int ranks = 1;   // in each group
  int inside = 0;  // the communicator of a group
  std::optional<int>
      across;  // that of the ranks with the same place in their groups, if there are several groups
};

inline ShardingGroups sharding_groups(const PassContext& context) {
  const job::StrategySpec& strategy = context.strategy;
  if (!job::shards_in_groups(strategy)) return {.ranks = context.world_size};
  return {.ranks = *strategy.sharding_configs.sharding_degree,
          .inside = strategy.nccl_comm_num,
          .across = 2 * strategy.nccl_comm_num};
}

// What the ranks of a group share besides optimizer states.
inline bool shards_gradients(const job::StrategySpec& strategy) {
  return strategy.sharding && strategy.sharding_configs.stage >= 2;
}
inline bool shards_parameters(const job::StrategySpec& strategy) {
  return strategy.sharding && strategy.sharding_configs.stage == 3;
}

}  // namespace fleetrun::runtime
