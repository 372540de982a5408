#include "support/thread_world.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "base/error/error.h"
#include "support/run_world.h"

namespace fleetrun::comm::thread_world_test {
namespace {

using namespace std::chrono_literals;
using testing::run_world;

TEST_CASE("a rank that is gone is named by the others at once") {
  std::atomic<int> named = 0;
  run_world(3, [&](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) return;
    try {
      comm.barrier();
    } catch (const Error& error) {
      const std::string wanted =
          "rank " + std::to_string(comm.rank()) + ": collective 2, barrier: rank 1 is gone";
      if (error.message() == wanted && error.exit_code() == 75) ++named;
    }
  });
  CHECK(named == 2);
}

TEST_CASE("a rank that does not come is named at the deadline") {
  std::promise<void> rank_0_gave_up;
  const auto late = [&](Communicator& comm) {
    if (comm.rank() == 1) return rank_0_gave_up.get_future().wait();
    try {
      comm.barrier();
    } catch (const Error&) {
      rank_0_gave_up.set_value();
      throw;
    }
  };
  CHECK_THROWS_WITH_AS(run_world(2, late, {.deadline = 50ms}),
                       "rank 0: collective 1, barrier: rank 1 did not come within 0.05 s", Error);
}

TEST_CASE("a failure that a test puts in is the first one, and nobody waits for it") {
  ThreadWorldOptions options;
  options.before_each = [](int rank, std::uint64_t number) {
    if (rank == 2 && number == 5) throw std::runtime_error("rank 2 broke");
  };
  const auto ten = [](Communicator& comm) {
    for (int i = 0; i < 10; ++i) comm.barrier();
  };
  CHECK_THROWS_WITH(run_world(4, ten, options), "rank 2 broke");
}

TEST_CASE("ranks that call different collectives learn which") {
  const auto confused = [](Communicator& comm) {
    std::vector<float> buffer(4);
    if (comm.rank() == 0) comm.all_reduce({buffer.data(), 4, DType::f32}, ReduceOp::sum);
    if (comm.rank() == 1) comm.all_reduce({buffer.data(), 3, DType::f32}, ReduceOp::sum);
  };
  CHECK_THROWS_AS(run_world(2, confused), Error);
  try {
    run_world(2, confused);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    CHECK(error.message().find("all_reduce of 3 f32 (sum)") != std::string::npos);
    CHECK(error.message().find("all_reduce of 4 f32 (sum)") != std::string::npos);
  }
}

TEST_CASE("arguments that no backend can serve are refused before anybody waits") {
  std::vector<std::uint8_t> bytes(8);
  const BufferView view{bytes.data(), 8, DType::u8};
  auto world = make_thread_world(2);
  CHECK_THROWS_WITH_AS(world[0]->all_reduce(view, ReduceOp::sum), "u8 cannot be reduced", Error);
  CHECK_THROWS_WITH_AS(world[0]->broadcast(view, 2), "broadcast: the root is 2, must be 0 to 1", Error);
  CHECK_THROWS_WITH_AS(world[0]->all_gather(view, view),
                       "all_gather: all is 8 u8, mine is 8 u8; all must be 2 slices like mine", Error);
  CHECK(world[0]->collectives() == 0);
}

}  // namespace
}  // namespace fleetrun::comm::thread_world_test
