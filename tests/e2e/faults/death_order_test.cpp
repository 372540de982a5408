// Which death came first, however many ranks there are and however early they die.
#include "e2e/faults/faults.h"
#include "support/soak.h"

namespace fleetrun::death_order_test {
namespace {

// The first deaths of a round are spread over the ranks: the first one, the last one and those between.
int dying_rank(int round, int ranks) { return (ranks - 1 + round * 7) % ranks; }

TEST_CASE(
    "row 'first_of_many.c': the first death by the kernel's order is the cause, of 2, 40 and 200 ranks") {
  const Launch launch;
  for (const int ranks : {2, 40, 200}) {
    const int rounds = testing::soak_count(ranks == 200 || testing::kSlowdown > 1 ? 2 : 5);
    for (int round = 0; round < rounds; ++round) {
      const int first = dying_rank(round, ranks);
      const ChildResult result = launch.run({"--nproc_per_node=" + std::to_string(ranks)},
                                            {"dies-first", std::to_string(first), "sleep", "100"});
      const std::string what = "round " + std::to_string(round) + ", rank " + std::to_string(first) + " of " +
                               std::to_string(ranks);
      REQUIRE_MESSAGE(result.code == 77, what);
      REQUIRE_MESSAGE(launch.report()["first_failed_rank"] == first, what);
      std::filesystem::remove(launch.folder / "dies-first.pid");
    }
  }
}

}  // namespace
}  // namespace fleetrun::death_order_test
