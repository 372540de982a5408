#include "job/spec/settle_strategy.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::job::settle_strategy_test {
namespace {

using Notes = std::vector<std::string>;

StrategySpec in_groups_of(int ranks) {
  StrategySpec strategy;
  strategy.use_hierarchical_allreduce = true;
  strategy.hierarchical_allreduce_inter_nranks = ranks;
  return strategy;
}

std::string complaint_about(const StrategySpec& strategy, const Ranks& ranks) {
  try {
    settle_strategy(strategy, ranks);
    return "";
  } catch (const Error& error) {
    return fmt::format("{} {}", error.exit_code(), error.message());
  }
}

TEST_CASE("nothing is adjusted that the ranks can do") {
  StrategySpec strategy = in_groups_of(2);
  strategy.nccl_comm_num = 3;
  strategy.execution_strategy.num_threads = 4;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 4, .of_node = 4});
  CHECK(settled.strategy.nccl_comm_num == 3);
  CHECK(settled.strategy.hierarchical_allreduce_inter_nranks == 2);
  CHECK(settled.notes.empty());
  CHECK(settle_strategy({}, {.all = 1, .of_node = 1}).notes.empty());
}

TEST_CASE(
    "ranks that train by themselves have one communicator and no sum of gradients; one rank has nothing to average") {
  StrategySpec strategy;
  strategy.localsgd = true;
  strategy.nccl_comm_num = 2;
  strategy.execution_strategy.num_threads = 2;
  strategy.build_strategy.gradient_scale_strategy = GradientScale::One;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 2, .of_node = 2});
  CHECK(
      settled.notes ==
      Notes{
          "strategy.nccl_comm_num is 2, taken as 1: localsgd sums no gradients",
          "strategy.build_strategy.gradient_scale_strategy is One, taken as CoeffNumDevice: localsgd sums no gradients"});
  CHECK(settled.strategy.nccl_comm_num == 1);
  CHECK(settled.strategy.build_strategy.gradient_scale_strategy == GradientScale::CoeffNumDevice);
  strategy = {};
  strategy.dgc = strategy.adaptive_localsgd = true;
  const SettledStrategy alone = settle_strategy(strategy, {.all = 1, .of_node = 1});
  CHECK(alone.notes == Notes{"strategy.adaptive_localsgd is true, taken as false: there is one rank",
                             "strategy.dgc is true, taken as false: there is one rank"});
}

TEST_CASE("one rank has one communicator") {
  StrategySpec strategy;
  strategy.nccl_comm_num = 2;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 1, .of_node = 1});
  CHECK(settled.strategy.nccl_comm_num == 1);
  CHECK(settled.notes == Notes{"strategy.nccl_comm_num is 2, taken as 1: there is one rank"});
}

TEST_CASE("groups of 1 stand for the ranks of a node, on one node for all of them") {
  for (const int nodes : {1, 2}) {
    const SettledStrategy settled = settle_strategy(in_groups_of(1), {.all = 4 * nodes, .of_node = 4});
    CHECK(settled.strategy.hierarchical_allreduce_inter_nranks == 4);
    CHECK(settled.notes.front() ==
          "strategy.hierarchical_allreduce_inter_nranks is 1, taken as 4: the ranks of a node");
  }
}

TEST_CASE("with sync_nccl_allreduce there is a thread for each communicator besides the one that computes") {
  const Ranks two = {.all = 2, .of_node = 2};
  CHECK(
      settle_strategy({.nccl_comm_num = 2}, two).notes ==
      Notes{
          "strategy.execution_strategy.num_threads is 1; sync_nccl_allreduce adds 2 threads for communication"});
  CHECK(settle_strategy({.sync_nccl_allreduce = false}, two).notes.empty());
}

TEST_CASE("num_threads 0 is 2 on the CPU and 4 on a GPU, and 1 where there may be only one") {
  StrategySpec strategy;
  strategy.execution_strategy.num_threads = 0;
  const SettledStrategy cpu = settle_strategy(strategy, {});
  CHECK(cpu.strategy.execution_strategy.num_threads == 2);
  CHECK(cpu.notes ==
        Notes{"strategy.execution_strategy.num_threads is 0, taken as 2: the usual number on the CPU"});
  const SettledStrategy gpu = settle_strategy(strategy, {.all = 2, .of_node = 2, .gpu = true});
  CHECK(gpu.strategy.execution_strategy.num_threads == 4);
  CHECK(gpu.notes ==
        Notes{"strategy.execution_strategy.num_threads is 0, taken as 4: the usual number on a GPU"});
  strategy.sync_batch_norm = true;
  CHECK(settle_strategy(strategy, {.all = 2, .of_node = 2}).strategy.execution_strategy.num_threads == 1);
}

TEST_CASE("the size of fused messages: the job's key, else the variable, else the usual one") {
  const auto flags = [](const std::string& name) -> std::optional<std::string> {
    if (name == "FLAGS_fuse_parameter_memory_size") return "16.5";
    return std::nullopt;
  };
  const Ranks two = {.all = 2, .of_node = 2};
  CHECK(settle_strategy({}, two).strategy.fuse_grad_size_in_MB == kFusedMegabytes);
  const SettledStrategy settled = settle_strategy({.sync_nccl_allreduce = false}, two, flags);
  CHECK(settled.strategy.fuse_grad_size_in_MB == 16.5);
  CHECK(settled.strategy.fuse_grad_size_in_TFLOPS == kFusedGradients);
  CHECK(settled.notes ==
        Notes{"FLAGS_fuse_parameter_memory_size is 16.5, taken for the fusion of all-reduces"});
  CHECK(settle_strategy({.fuse_grad_size_in_MB = 8}, two, flags).strategy.fuse_grad_size_in_MB == 8);
}

TEST_CASE("where nothing is fused the variables mean nothing") {
  const auto flags = [](const std::string&) -> std::optional<std::string> { return "much"; };
  CHECK(settle_strategy({}, {}, flags).notes.empty());
}

TEST_CASE("a last group is said to be off where there are no groups by size") {
  const Ranks two = {.all = 2, .of_node = 2};
  const auto notes = [](StrategySpec strategy, const Ranks& ranks) {
    strategy.sync_nccl_allreduce = false;
    strategy.last_comm_group_size_MB = 1.5;
    const SettledStrategy settled = settle_strategy(strategy, ranks);
    CHECK(settled.strategy.last_comm_group_size_MB.has_value() == settled.notes.empty());
    return settled.notes;
  };
  const std::string off = "strategy.last_comm_group_size_MB is 1.5, taken as off: ";
  CHECK(notes({}, two).empty());
  CHECK(notes({}, {}) == Notes{off + "there is one rank"});
  CHECK(notes({.fuse_grad_size_in_MB = 0}, two) == Notes{off + "fuse_grad_size_in_MB is 0"});
  CHECK(notes({.fuse_grad_size_in_MB = -1}, two) == Notes{off + "fuse_grad_size_in_MB is -1"});
  CHECK(notes({.fuse_all_reduce_ops = false}, two) == Notes{off + "fuse_all_reduce_ops is false"});
}

TEST_CASE("a variable for the size of messages that is not a number is refused") {
  const auto flags = [](const std::string&) -> std::optional<std::string> { return "much"; };
  CHECK_THROWS_WITH_AS(settle_strategy({}, {.all = 2, .of_node = 2}, flags),
                       "FLAGS_fuse_parameter_memory_size is \"much\", wanted a number", Error);
}

TEST_CASE("Reduce mode sends and updates each gradient by itself; broadcasts are fused in Reduce mode only") {
  const Ranks two = {.all = 2, .of_node = 2};
  StrategySpec strategy = {.sync_nccl_allreduce = false};
  strategy.build_strategy.fuse_broadcast_ops = true;
  CHECK(
      settle_strategy(strategy, two).notes ==
      Notes{
          "strategy.build_strategy.fuse_broadcast_ops is true, taken as false: it only works under Reduce mode"});
  strategy.build_strategy.reduce_strategy = ReduceStrategy::Reduce;
  strategy.build_strategy.fuse_all_optimizer_ops = true;
  const SettledStrategy settled = settle_strategy(strategy, two);
  CHECK(
      settled.notes ==
      Notes{
          "strategy.fuse_all_reduce_ops is true, taken as false: reduce_strategy is Reduce",
          "strategy.build_strategy.fuse_all_optimizer_ops is true, taken as false: reduce_strategy is Reduce"});
  CHECK(settled.strategy.build_strategy.fuse_broadcast_ops);
  CHECK(settle_strategy(strategy, {}).strategy.build_strategy.reduce_strategy == ReduceStrategy::AllReduce);
}

TEST_CASE("on one rank there is nothing to sum in half precision") {
  CHECK(settle_strategy({.fp16_allreduce = true}, {.all = 1, .of_node = 1}).notes ==
        Notes{"strategy.fp16_allreduce is true, taken as false: there is one rank"});
  CHECK(settle_strategy({.fp16_allreduce = true}, {.all = 2, .of_node = 2}).strategy.fp16_allreduce);
}

TEST_CASE("one group of all ranks is allowed") {
  CHECK(complaint_about(in_groups_of(4), {.all = 4, .of_node = 2}).empty());
}

TEST_CASE("ranks that cannot form the groups are errors of the job") {
  CHECK(complaint_about(in_groups_of(2), {.all = 1, .of_node = 1}) ==
        "78 strategy.use_hierarchical_allreduce is true, wanted 2 ranks or more, found 1");
  const std::string key = "78 strategy.hierarchical_allreduce_inter_nranks is ";
  CHECK(complaint_about(in_groups_of(3), {.all = 4, .of_node = 4}) ==
        key + "3, wanted a divisor of the number of ranks, which is 4");
  CHECK(complaint_about(in_groups_of(8), {.all = 4, .of_node = 4}) ==
        key + "8, wanted a divisor of the number of ranks, which is 4");
  CHECK(complaint_about(in_groups_of(1), {.all = 2, .of_node = 1}) ==
        key + "1, which stands for the ranks of a node, wanted groups of 2 or more: each node has one rank");
}

TEST_CASE("sync_batch_norm wants one communicator of all ranks, and ops one after the other") {
  StrategySpec strategy = in_groups_of(3);
  strategy.sync_batch_norm = true;
  strategy.nccl_comm_num = 2;
  strategy.execution_strategy.num_threads = 3;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 4, .of_node = 4});
  CHECK(settled.strategy.sync_batch_norm);
  CHECK(settled.strategy.nccl_comm_num == 1);
  CHECK(settled.strategy.use_hierarchical_allreduce == false);
  CHECK(settled.strategy.execution_strategy.num_threads == 1);
  CHECK(settled.strategy.build_strategy.enable_sequential_execution);
  const std::string why = ": sync_batch_norm is true";
  CHECK(settled.notes ==
        Notes{"strategy.nccl_comm_num is 2, taken as 1" + why,
              "strategy.use_hierarchical_allreduce is true, taken as false" + why,
              "strategy.execution_strategy.num_threads is 3, taken as 1" + why,
              "strategy.build_strategy.enable_sequential_execution is false, taken as true" + why});
}

TEST_CASE("sync_batch_norm among one rank is said to have no effect, and forces nothing") {
  StrategySpec strategy;
  strategy.sync_batch_norm = true;
  strategy.execution_strategy.num_threads = 3;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 1, .of_node = 1});
  CHECK(!settled.strategy.sync_batch_norm);
  CHECK(settled.strategy.execution_strategy.num_threads == 3);
  CHECK(settled.notes == Notes{"strategy.sync_batch_norm is true, taken as false: there is one rank"});
}

TEST_CASE("groups are not looked at while they are not used") {
  StrategySpec strategy = in_groups_of(3);
  strategy.use_hierarchical_allreduce = false;
  CHECK(complaint_about(strategy, {.all = 4, .of_node = 4}).empty());
}

StrategySpec sharded(std::optional<int> degree, std::optional<int> dp_degree = std::nullopt) {
  StrategySpec strategy;
  strategy.sharding = true;
  strategy.sharding_configs.sharding_degree = degree;
  strategy.sharding_configs.dp_degree = dp_degree;
  return strategy;
}

TEST_CASE("sharding reduces to owners: of all ranks, or in groups that either degree decides") {
  const Ranks four = {.all = 4, .of_node = 4};
  const auto degrees = [&](const StrategySpec& strategy) {
    const StrategySpec settled = settle_strategy(strategy, four).strategy;
    CHECK(settled.build_strategy.reduce_strategy == ReduceStrategy::Reduce);
    CHECK(shards_in_groups(settled) == (*settled.sharding_configs.dp_degree > 1));
    CHECK(communicator_count(settled) == (shards_in_groups(settled) ? 3 : 1));
    return fmt::format("{} * {}", *settled.sharding_configs.sharding_degree,
                       *settled.sharding_configs.dp_degree);
  };
  CHECK(degrees(sharded({})) == "4 * 1");
  CHECK(degrees(sharded(2)) == "2 * 2");
  CHECK(degrees(sharded({}, 2)) == "2 * 2");
  CHECK(degrees(sharded(2, 2)) == "2 * 2");
  CHECK(
      settle_strategy(sharded({}), four).notes ==
      Notes{
          "strategy.fuse_all_reduce_ops is true, taken as false: sharding is true",
          "strategy.execution_strategy.num_threads is 1; sync_nccl_allreduce adds 1 thread for communication"});
}

TEST_CASE("degrees of sharding that do not fit the ranks are refused, both named") {
  const Ranks four = {.all = 4, .of_node = 4};
  CHECK(
      complaint_about(sharded(3), four) ==
      "78 strategy.sharding_configs: sharding_degree is 3 for 4 ranks, wanted sharding_degree * dp_degree = 4");
  CHECK(complaint_about(sharded({}, 3), four) ==
        "78 strategy.sharding_configs: dp_degree is 3 for 4 ranks, wanted sharding_degree * dp_degree = 4");
  CHECK(
      complaint_about(sharded(2, 1), four) ==
      "78 strategy.sharding_configs: sharding_degree is 2 and dp_degree 1 for 4 ranks, wanted sharding_degree * dp_degree = 4");
}

TEST_CASE("where there is nothing to divide, sharding is off") {
  const SettledStrategy alone = settle_strategy(sharded(2), {.all = 1, .of_node = 1});
  CHECK(!alone.strategy.sharding);
  CHECK(alone.notes.front() == "strategy.sharding is true, taken as false: there is one rank");
  const SettledStrategy by_one = settle_strategy(sharded(1), {.all = 4, .of_node = 4});
  CHECK(!by_one.strategy.sharding);
  CHECK(by_one.strategy.build_strategy.reduce_strategy == ReduceStrategy::AllReduce);
  CHECK(by_one.notes.front() == "strategy.sharding is true, taken as false: sharding_degree is 1");
}

TEST_CASE("sharding in one group is not hybrid, and groups have no others inside") {
  StrategySpec strategy = sharded({});
  strategy.sharding_configs.hybrid_dp = true;
  CHECK(settle_strategy(strategy, {.all = 4, .of_node = 4}).notes.front() ==
        "strategy.sharding_configs.hybrid_dp is true, taken as false: all ranks are in one group");
  strategy.sharding_configs.sharding_degree = 2;
  strategy.use_hierarchical_allreduce = true;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 4, .of_node = 4});
  CHECK(settled.notes.front() ==
        "strategy.use_hierarchical_allreduce is true, taken as false: sharding has groups of its own");
  CHECK(settled.strategy.sharding_configs.hybrid_dp);
}

TEST_CASE("the stages of a pipeline divide the ranks") {
  StrategySpec strategy;
  strategy.pipeline = true;
  strategy.hybrid_configs.pp_degree = 3;
  CHECK(settle_strategy(strategy, {.all = 6, .of_node = 6}).notes ==
        Notes{"strategy.fuse_all_reduce_ops is true, taken as false: pipeline is true"});
  CHECK(complaint_about(strategy, {.all = 4, .of_node = 4}) ==
        "78 strategy.hybrid_configs.pp_degree is 3, wanted a divisor of the number of ranks, which is 4");
}

TEST_CASE("a pipeline has no sums over ranks, and runs its ops in their order") {
  StrategySpec strategy;
  strategy.pipeline = true;
  CHECK(settle_strategy(strategy, {.all = 4, .of_node = 4}).notes.empty());
  strategy.nccl_comm_num = 2;
  strategy.execution_strategy.num_threads = 3;
  strategy.build_strategy.fuse_all_optimizer_ops = true;
  const SettledStrategy settled = settle_strategy(strategy, {.all = 4, .of_node = 4});
  CHECK(settled.strategy.nccl_comm_num == 1);
  CHECK(settled.notes ==
        Notes{"strategy.nccl_comm_num is 2, taken as 1: pipeline is true",
              "strategy.execution_strategy.num_threads is 3, taken as 1: pipeline is true",
              "strategy.build_strategy.fuse_all_optimizer_ops is true, taken as false: pipeline is true"});
}

}  // namespace
}  // namespace fleetrun::job::settle_strategy_test
