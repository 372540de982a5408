#include "job/settle_strategy.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::job {
namespace {

constexpr const char* kGroupKey = "strategy.hierarchical_allreduce_inter_nranks";

void settle_communicators(const Ranks& ranks, SettledStrategy& settled) {
  int& communicators = settled.strategy.nccl_comm_num;
  if (ranks.all > 1 || communicators == 1) return;
  settled.notes.push_back(
      fmt::format("strategy.nccl_comm_num is {}, taken as 1: there is one rank", communicators));
  communicators = 1;
}

template <typename T>
void force(const char* key, T& value, T wanted, SettledStrategy& settled) {
  if (value == wanted) return;
  settled.notes.push_back(
      fmt::format("strategy.{} is {}, taken as {}: sync_batch_norm is true", key, value, wanted));
  value = wanted;
}

// Its sums are in the midst of the forward and the backward pass: every rank has to come to them in the same order.
void settle_batch_norm(const Ranks& ranks, SettledStrategy& settled) {
  StrategySpec& strategy = settled.strategy;
  if (!strategy.sync_batch_norm) return;
  if (ranks.all == 1) {
    settled.notes.emplace_back("strategy.sync_batch_norm is true, taken as false: there is one rank");
    strategy.sync_batch_norm = false;
    return;
  }
  force("nccl_comm_num", strategy.nccl_comm_num, 1, settled);
  force("use_hierarchical_allreduce", strategy.use_hierarchical_allreduce, false, settled);
  force("execution_strategy.num_threads", strategy.execution_strategy.num_threads, 1, settled);
  force("build_strategy.enable_sequential_execution", strategy.build_strategy.enable_sequential_execution,
        true, settled);
}

void settle_groups(const Ranks& ranks, SettledStrategy& settled) {
  if (!settled.strategy.use_hierarchical_allreduce) return;
  if (ranks.all == 1)
    throw Error(ErrorKind::config,
                "strategy.use_hierarchical_allreduce is true, wanted 2 ranks or more, found 1");
  int& group = settled.strategy.hierarchical_allreduce_inter_nranks;
  const bool is_node = group == 1;
  if (is_node) group = ranks.of_node;
  if (group == 1)
    throw Error(
        ErrorKind::config,
        fmt::format(
            "{} is 1, which stands for the ranks of a node, wanted groups of 2 or more: each node has "
            "one rank",
            kGroupKey));
  if (ranks.all % group != 0)
    throw Error(ErrorKind::config,
                fmt::format("{} is {}, wanted a divisor of the number of ranks, which is {}", kGroupKey,
                            group, ranks.all));
  if (is_node)
    settled.notes.push_back(fmt::format("{} is 1, taken as {}: the ranks of a node", kGroupKey, group));
}

}  // namespace

SettledStrategy settle_strategy(const StrategySpec& strategy, const Ranks& ranks) {
  SettledStrategy settled = {strategy, {}};
  settle_communicators(ranks, settled);
  settle_batch_norm(ranks, settled);
  settle_groups(ranks, settled);
  return settled;
}

}  // namespace fleetrun::job
