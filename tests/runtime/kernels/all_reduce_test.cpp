#include <doctest/doctest.h>

#include "base/error/error.h"
#include "comm/collective/communicator.h"
#include "support/run_op.h"

namespace fleetrun::runtime::all_reduce_test {
namespace {

using test::Floats;

// Remembers what it was given and doubles it, as two equal ranks would.
class TwoEqualRanks : public comm::Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void all_reduce(BufferView buffer, comm::ReduceOp op) override {
    CHECK(op == comm::ReduceOp::sum);
    for (std::size_t i = 0; i < buffer.count; ++i) buffer.as<float>()[i] *= 2;
    seen = buffer;
  }
  void reduce(BufferView, comm::ReduceOp, int) override {}
  void broadcast(BufferView, int) override {}
  void reduce_scatter(BufferView, BufferView, comm::ReduceOp) override {}
  void all_gather(BufferView, BufferView) override {}
  void barrier() override {}
  std::unique_ptr<comm::Memory> allocate(std::size_t) override { return nullptr; }
  std::uint64_t collectives() const override { return 0; }
  void record_in(FlightRecords&, const std::string&) override {}

  BufferView seen;
};

Program one_all_reduce() {
  Program program;
  Builder builder(program, all_ops());
  const ValueId x = builder.feed("x", {3});
  builder.add({.type = "all_reduce",
               .inputs = {{"x", x}},
               .attributes = {{"op", std::string("sum")}},
               .name = "sum"});
  return program;
}

TEST_CASE("all_reduce gives the whole tensor to its communicator, in place") {
  const auto device = make_cpu_device();
  test::ProgramRun run(one_all_reduce(), all_ops(), *device);
  TwoEqualRanks ranks;
  run.context().communicator = &ranks;
  run.set(0, Floats{1, 2, 3});
  run.run();
  CHECK(run.get(0) == Floats{2, 4, 6});
  CHECK(ranks.seen.count == 3);
  CHECK(ranks.seen.dtype == DType::f32);
}

TEST_CASE("all_reduce without a communicator is an error") {
  const auto device = make_cpu_device();
  test::ProgramRun run(one_all_reduce(), all_ops(), *device);
  CHECK_THROWS_WITH_AS(run.run(), "all_reduce of x runs without a communicator", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::all_reduce_test
