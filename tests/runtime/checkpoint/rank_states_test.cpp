#include "runtime/checkpoint/rank_states.h"

#include <doctest/doctest.h>

#include <mutex>

#include "support/run_world.h"
#include "support/small_training.h"

namespace fleetrun::runtime::rank_states_test {
namespace {

TEST_CASE("the mean of what three ranks have alike has the same bits") {
  constexpr int kRanks = 3;
  test::ThreadWorlds worlds;
  std::mutex checks;
  testing::run_ranks(kRanks, [&](int rank) {
    const comm::World world = worlds.world_of(rank, kRanks);
    std::vector<float> alike, apart = {static_cast<float>(rank)};
    for (int i = 1; i <= 1000; ++i) alike.push_back(0.1F * static_cast<float>(i));
    std::vector<float> mean = alike;
    average_over_ranks(mean, *world.communicator);
    average_over_ranks(apart, *world.communicator);
    const std::lock_guard lock(checks);
    CHECK(mean == alike);
    CHECK(apart.front() == 1.0F);
  });
}

}  // namespace
}  // namespace fleetrun::runtime::rank_states_test
