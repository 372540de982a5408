#include "job/spec/settle_strategy.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error/error.h"
#include "job/spec/settle_pipeline.h"

namespace fleetrun::job {
namespace {

// PaddlePaddle's for each device (python/paddle/fluid/compiler.py).
constexpr int kThreadsOfCpu = 2, kThreadsOfGpu = 4;

constexpr const char* kGroupKey = "strategy.hierarchical_allreduce_inter_nranks";

void settle_communicators(const Ranks& ranks, SettledStrategy& settled) {
  int& communicators = settled.strategy.nccl_comm_num;
  if (ranks.all > 1 || communicators == 1) return;
  settled.notes.push_back(
      fmt::format("strategy.nccl_comm_num is {}, taken as 1: there is one rank", communicators));
  communicators = 1;
}

template <typename T>
void force(const char* key, T& value, T wanted, const char* why, SettledStrategy& settled) {
  if (value == wanted) return;
  settled.notes.push_back(fmt::format("strategy.{} is {}, taken as {}: {}", key, value, wanted, why));
  value = wanted;
}

// Its sums are within the forward and the backward pass, so every rank has to reach them in the same order.
void settle_batch_norm(const Ranks& ranks, SettledStrategy& settled) {
  StrategySpec& strategy = settled.strategy;
  if (!strategy.sync_batch_norm) return;
  if (ranks.all == 1) {
    settled.notes.emplace_back("strategy.sync_batch_norm is true, taken as false: there is one rank");
    strategy.sync_batch_norm = false;
    return;
  }
  const char* const why = "sync_batch_norm is true";
  force("nccl_comm_num", strategy.nccl_comm_num, 1, why, settled);
  if (!strategy.use_hierarchical_allreduce) strategy.use_hierarchical_allreduce = false;
  force("use_hierarchical_allreduce", *strategy.use_hierarchical_allreduce, false, why, settled);
  force("execution_strategy.num_threads", strategy.execution_strategy.num_threads, 1, why, settled);
  force("build_strategy.enable_sequential_execution", strategy.build_strategy.enable_sequential_execution,
        true, why, settled);
}

// Or ops that are run again could come before the memory they are to save is free.
void settle_recompute(SettledStrategy& settled) {
  if (!settled.strategy.recompute) return;
  force("build_strategy.enable_sequential_execution",
        settled.strategy.build_strategy.enable_sequential_execution, true, "recompute is true", settled);
}

// Each rank has other layers, which it runs in the order of the micro-batches. Nothing is summed over the ranks.
void settle_stages(const Ranks& ranks, SettledStrategy& settled) {
  StrategySpec& strategy = settled.strategy;
  if (!strategy.pipeline) return;
  const int stages = stages_of(strategy, ranks.all);
  if (ranks.all % stages != 0)
    throw Error(
        ErrorKind::config,
        fmt::format(
            "strategy.hybrid_configs.pp_degree is {}, wanted a divisor of the number of ranks, which is {}",
            stages, ranks.all));
  const char* const why = "pipeline is true";
  if (stages < ranks.all) force("fuse_all_reduce_ops", strategy.fuse_all_reduce_ops, false, why, settled);
  force("nccl_comm_num", strategy.nccl_comm_num, 1, why, settled);
  if (!strategy.use_hierarchical_allreduce) strategy.use_hierarchical_allreduce = false;
  force("use_hierarchical_allreduce", *strategy.use_hierarchical_allreduce, false, why, settled);
  force("execution_strategy.num_threads", strategy.execution_strategy.num_threads, 1, why, settled);
  force("build_strategy.fuse_all_optimizer_ops", strategy.build_strategy.fuse_all_optimizer_ops, false, why,
        settled);
}

void settle_groups(const Ranks& ranks, SettledStrategy& settled) {
  if (!settled.strategy.use_hierarchical_allreduce.value_or(false)) return;
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
            "{} is 1, which stands for the ranks of a node, wanted groups of 2 or more: each node has one rank",
            kGroupKey));
  if (ranks.all % group != 0)
    throw Error(ErrorKind::config,
                fmt::format("{} is {}, wanted a divisor of the number of ranks, which is {}", kGroupKey,
                            group, ranks.all));
  if (is_node)
    settled.notes.push_back(fmt::format("{} is 1, taken as {}: the ranks of a node", kGroupKey, group));
}

// The key's own value, else the variable's, else the usual one.
void settle_limit(std::optional<double>& value, const char* variable, double usual,
                  const Variables& variables, SettledStrategy& settled) {
  if (value) return;
  const auto given = variables ? variables(variable) : std::nullopt;
  if (!given) {
    value = usual;
    return;
  }
  double number = 0;
  const auto [end, problem] = std::from_chars(given->data(), given->data() + given->size(), number);
  if (problem != std::errc() || end != given->data() + given->size() || !std::isfinite(number))
    throw Error(ErrorKind::config, fmt::format("{} is \"{}\", wanted a number", variable, *given));
  value = number;
  settled.notes.push_back(fmt::format("{} is {}, taken for the fusion of all-reduces", variable, *given));
}

// It is taken off the groups that a size makes.
void settle_last_group(const Ranks& ranks, bool fuses, SettledStrategy& settled) {
  const StrategySpec& strategy = settled.strategy;
  if (!strategy.last_comm_group_size_MB || (fuses && *strategy.fuse_grad_size_in_MB > 0)) return;
  const std::string why = ranks.all == 1 ? "there is one rank"
                          : fuses ? fmt::format("fuse_grad_size_in_MB is {}", *strategy.fuse_grad_size_in_MB)
                                  : "fuse_all_reduce_ops is false";
  settled.notes.push_back(fmt::format("strategy.last_comm_group_size_MB is {}, taken as off: {}",
                                      *strategy.last_comm_group_size_MB, why));
  settled.strategy.last_comm_group_size_MB.reset();
}

void settle_fusion(const Ranks& ranks, const Variables& variables, SettledStrategy& settled) {
  const bool fuses = ranks.all > 1 && settled.strategy.fuse_all_reduce_ops;
  const Variables& of_fusion = fuses ? variables : nullptr;
  settle_limit(settled.strategy.fuse_grad_size_in_MB, "FLAGS_fuse_parameter_memory_size", kFusedMegabytes,
               of_fusion, settled);
  settle_limit(settled.strategy.fuse_grad_size_in_TFLOPS, "FLAGS_fuse_parameter_groups_size", kFusedGradients,
               of_fusion, settled);
  settle_last_group(ranks, fuses, settled);
}

void settle_half_precision(const Ranks& ranks, SettledStrategy& settled) {
  if (ranks.all == 1)
    force("fp16_allreduce", settled.strategy.fp16_allreduce, false, "there is one rank", settled);
}

[[noreturn]] void refuse_groups(const std::string& what, int ranks) {
  throw Error(
      ErrorKind::config,
      fmt::format("strategy.sharding_configs: {} for {} ranks, wanted sharding_degree * dp_degree = {}", what,
                  ranks, ranks));
}

// Sets both degrees.
void settle_degrees(ShardingSpec& sharding, int ranks) {
  if (!sharding.sharding_degree && sharding.dp_degree) {
    if (ranks % *sharding.dp_degree != 0)
      refuse_groups(fmt::format("dp_degree is {}", *sharding.dp_degree), ranks);
    sharding.sharding_degree = ranks / *sharding.dp_degree;
  }
  const int degree = sharding.sharding_degree.value_or(ranks);
  if (ranks % degree != 0) refuse_groups(fmt::format("sharding_degree is {}", degree), ranks);
  if (sharding.dp_degree.value_or(ranks / degree) != ranks / degree)
    refuse_groups(fmt::format("sharding_degree is {} and dp_degree {}", degree, *sharding.dp_degree), ranks);
  sharding.sharding_degree = degree;
  sharding.dp_degree = ranks / degree;
}

// Sharding is the reduction to owners, in groups of ranks.
void settle_sharding(const Ranks& ranks, SettledStrategy& settled) {
  StrategySpec& strategy = settled.strategy;
  if (!strategy.sharding) return;
  if (ranks.all > 1) settle_degrees(strategy.sharding_configs, ranks.all);
  const char* const why = ranks.all == 1 ? "there is one rank" : "sharding_degree is 1";
  if (ranks.all == 1 || *strategy.sharding_configs.sharding_degree == 1)
    return force("sharding", strategy.sharding, false, why, settled);
  strategy.build_strategy.reduce_strategy = ReduceStrategy::Reduce;
  if (strategy.sharding_configs.stage == 3)
    force("build_strategy.fuse_broadcast_ops", strategy.build_strategy.fuse_broadcast_ops, false,
          "sharding_configs.stage is 3", settled);
  const bool is_hybrid = *strategy.sharding_configs.dp_degree > 1;
  if (!is_hybrid) {
    force("sharding_configs.hybrid_dp", strategy.sharding_configs.hybrid_dp, false,
          "all ranks are in one group", settled);
  } else if (strategy.use_hierarchical_allreduce.value_or(false)) {
    force("use_hierarchical_allreduce", *strategy.use_hierarchical_allreduce, false,
          "sharding has groups of its own", settled);
  } else {
    strategy.use_hierarchical_allreduce = false;
  }
}

// Ranks that train by themselves sum no gradients; the averages of the parameters travel as one message.
void settle_local_training(const Ranks& ranks, SettledStrategy& settled) {
  StrategySpec& strategy = settled.strategy;
  if (ranks.all == 1) {
    force("localsgd", strategy.localsgd, false, "there is one rank", settled);
    force("adaptive_localsgd", strategy.adaptive_localsgd, false, "there is one rank", settled);
    force("dgc", strategy.dgc, false, "there is one rank", settled);
  }
  if (!strategy.localsgd && !strategy.adaptive_localsgd) return;
  const std::string why =
      fmt::format("{} sums no gradients", strategy.localsgd ? "localsgd" : "adaptive_localsgd");
  force("nccl_comm_num", strategy.nccl_comm_num, 1, why.c_str(), settled);
  GradientScale& scale = strategy.build_strategy.gradient_scale_strategy;
  if (scale == GradientScale::CoeffNumDevice) return;
  settled.notes.push_back(fmt::format(
      "strategy.build_strategy.gradient_scale_strategy is One, taken as CoeffNumDevice: {}", why));
  scale = GradientScale::CoeffNumDevice;
}

// Reduce and AllReduce each know fusions of their own.
void settle_reduction(const Ranks& ranks, SettledStrategy& settled) {
  BuildStrategySpec& build = settled.strategy.build_strategy;
  if (build.reduce_strategy == ReduceStrategy::Reduce && ranks.all == 1) {
    settled.notes.emplace_back(
        "strategy.build_strategy.reduce_strategy is Reduce, taken as AllReduce: there is one rank");
    build.reduce_strategy = ReduceStrategy::AllReduce;
  }
  if (build.reduce_strategy == ReduceStrategy::Reduce) {
    const char* const why = settled.strategy.sharding ? "sharding is true" : "reduce_strategy is Reduce";
    force("fuse_all_reduce_ops", settled.strategy.fuse_all_reduce_ops, false, why, settled);
    force("build_strategy.fuse_all_optimizer_ops", build.fuse_all_optimizer_ops, false, why, settled);
  } else {
    force("build_strategy.fuse_broadcast_ops", build.fuse_broadcast_ops, false,
          "it only works under Reduce mode", settled);
  }
}

// After sync_batch_norm, which has them in its own way.
void settle_usual_threads(const Ranks& ranks, SettledStrategy& settled) {
  int& threads = settled.strategy.execution_strategy.num_threads;
  if (threads != 0) return;
  threads = ranks.gpu ? kThreadsOfGpu : kThreadsOfCpu;
  settled.notes.push_back(
      fmt::format("strategy.execution_strategy.num_threads is 0, taken as {}: the usual number {}", threads,
                  ranks.gpu ? "on a GPU" : "on the CPU"));
}

void settle_threads(const Ranks& ranks, const SettledStrategy& settled, std::vector<std::string>& notes) {
  const int threads = settled.strategy.execution_strategy.num_threads;
  const int wanted = communicator_count(settled.strategy) + 1;
  const bool holds =
      settled.strategy.sync_nccl_allreduce && !settled.strategy.sync_batch_norm && !settled.strategy.pipeline;
  if (ranks.all == 1 || !holds || threads >= wanted) return;
  const int added = wanted - threads;
  notes.push_back(fmt::format(
      "strategy.execution_strategy.num_threads is {}; sync_nccl_allreduce adds {} thread{} for communication",
      threads, added, added == 1 ? "" : "s"));
}

}  // namespace

bool shards_in_groups(const StrategySpec& strategy) {
  return strategy.sharding && strategy.sharding_configs.dp_degree.value_or(1) > 1;
}

int communicator_count(const StrategySpec& strategy) {
  return strategy.nccl_comm_num * (shards_in_groups(strategy) ? 3 : 1);
}

SettledStrategy settle_strategy(const StrategySpec& strategy, const Ranks& all_ranks,
                                const Variables& variables) {
  SettledStrategy settled = {strategy, {}};
  settle_stages(all_ranks, settled);
  Ranks ranks = all_ranks;
  ranks.all /= stages_of(strategy, ranks.all);  // with the same layers
  settle_communicators(ranks, settled);
  settle_batch_norm(ranks, settled);
  settle_sharding(ranks, settled);
  settle_recompute(settled);
  settle_groups(ranks, settled);
  settle_half_precision(ranks, settled);
  settle_local_training(ranks, settled);
  settle_reduction(ranks, settled);
  settle_fusion(ranks, variables, settled);
  settle_usual_threads(ranks, settled);
  settle_threads(ranks, settled, settled.notes);
  return settled;
}

}  // namespace fleetrun::job
