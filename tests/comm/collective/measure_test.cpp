#include "comm/collective/measure.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "comm/collective/aligned_memory.h"
#include "support/run_world.h"

namespace fleetrun::comm::measure_test {
namespace {

using testing::run_world;

TEST_CASE("every dtype is measured with right sums and times in order") {
  CHECK_NOTHROW(run_world(3, [](Communicator& comm) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64}) {
      int signs = 0;
      const Measured found = measure_all_reduce(
          comm, {.bytes = 80, .dtype = dtype, .rounds = 30, .before_each = [&] { ++signs; }});
      const bool ordered =
          0 < found.least && found.least <= found.median && found.median <= found.p90 && found.mean > 0;
      if (found.wrong != 0 || found.count != 80 / size_of(dtype) || found.rounds != 30 || signs != 30 ||
          !ordered)
        throw std::runtime_error("a wrong measurement");
    }
  }));
}

TEST_CASE("the sums of more ranks than bf16 can count are right, too") {
  CHECK_NOTHROW(run_world(150, [](Communicator& comm) {
    const Measured found = measure_all_reduce(comm, {.bytes = 80, .dtype = DType::bf16, .rounds = 1});
    if (found.wrong != 0) throw std::runtime_error("a right sum counts as wrong");
  }));
}

TEST_CASE("without a number the rounds are as many as the time allows, on all ranks alike") {
  CHECK_NOTHROW(run_world(2, [](Communicator& comm) {
    const int rounds = measure_all_reduce(comm, {.bytes = 8}).rounds;
    if (rounds < 20 || rounds > 2000) throw std::runtime_error("too few or too many rounds");
  }));
}

// What a broken backend would do: forgets what the others have.
class Forgetful : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void all_reduce(BufferView, ReduceOp) override {}
  void reduce(BufferView, ReduceOp, int) override {}
  void broadcast(BufferView, int) override {}
  void reduce_scatter(BufferView, BufferView, ReduceOp) override {}
  void all_gather(BufferView, BufferView) override {}
  void barrier() override {}
  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return make_aligned_memory(bytes); }
  std::uint64_t collectives() const override { return 0; }
  void record_in(FlightRecords&, const std::string&) override {}
};

TEST_CASE("a wrong sum is counted") {
  Forgetful broken;
  CHECK(measure_all_reduce(broken, {.bytes = 32, .dtype = DType::i64, .rounds = 1}).wrong == 4);
}

}  // namespace
}  // namespace fleetrun::comm::measure_test
