#include "runtime/training/trainer/training_communicators.h"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "job/spec/settle_strategy.h"
#include "support/small_training.h"

namespace fleetrun::runtime::training_communicators_test {
namespace {

constexpr int kRanks = 4;

TEST_CASE("sharding in groups has communicators of all ranks, of the groups, and of the places in them") {
  job::StrategySpec strategy;
  strategy.nccl_comm_num = 2;
  strategy.sharding = true;
  strategy.sharding_configs.sharding_degree = 2;
  strategy = job::settle_strategy(strategy, {.all = kRanks, .of_node = kRanks}).strategy;
  test::ThreadWorlds worlds;
  std::mutex checks;
  testing::run_ranks(kRanks, [&](int rank) {
    comm::World world = worlds.world_of(rank, kRanks);
    const auto device = make_cpu_device();
    const TrainingCommunicators made(strategy, world, *device);
    std::vector<std::int32_t> members;  // of each communicator: a bit for each rank
    for (comm::Communicator* communicator : made.all().gradients) {
      members.push_back(1 << rank);
      communicator->all_reduce({&members.back(), 1, DType::i32}, comm::ReduceOp::sum);
    }
    const std::int32_t group = rank < 2 ? 0b0011 : 0b1100, place = rank % 2 == 0 ? 0b0101 : 0b1010;
    const std::lock_guard lock(checks);
    CHECK(members == std::vector<std::int32_t>{0b1111, 0b1111, group, group, place, place});
  });
  CHECK(describe_communicators(strategy) ==
        "all-reduces by 2 communicators, sharded by 2 ranks, 2 groups, each waited for; num_threads 7");
}

TEST_CASE("the flight record tells the communicators of one group from those of another") {
  job::StrategySpec strategy;
  strategy.sharding = true;
  strategy.sharding_configs.sharding_degree = 2;
  strategy = job::settle_strategy(strategy, {.all = kRanks, .of_node = kRanks}).strategy;
  test::ThreadWorlds worlds;
  std::mutex checks;
  std::map<std::string, std::set<int>> ranks;
  testing::run_ranks(kRanks, [&](int rank) {
    comm::World world = worlds.world_of(rank, kRanks);
    const auto device = make_cpu_device();
    FlightRecords records;
    const TrainingCommunicators made(strategy, world, *device, &records);
    const std::lock_guard lock(checks);
    for (const FlightHistory& history : records.read()) ranks[history.communicator].insert(rank);
  });
  using Ranks = std::set<int>;
  CHECK(ranks["communicator 1, group 0"] == Ranks{0, 1});
  CHECK(ranks["communicator 1, group 1"] == Ranks{2, 3});
  CHECK(ranks["communicator 2, places 0"] == Ranks{0, 2});
  CHECK(ranks["communicator 2, places 1"] == Ranks{1, 3});
}

}  // namespace
}  // namespace fleetrun::runtime::training_communicators_test
