#include <doctest/doctest.h>

#include <array>

#include "base/error/error.h"
#include "support/run_op.h"
#include "support/run_world.h"

namespace fleetrun::runtime::rooted_collectives_test {
namespace {

using test::Floats;

Program one_collective(const std::string& type, std::int64_t root) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId x = builder.feed("x", {3});
  const Attributes attributes = type == "reduce" ? Attributes{{"op", std::string("sum")}, {"root", root}}
                                                 : Attributes{{"roots", Shape{root}}};
  builder.add({.type = type, .inputs = {{"x", x}}, .attributes = attributes, .name = "out"});
  return program;
}

// What each of two ranks has after the op, which gives 1, 2, 3 of rank 0 and 10, 20, 30 of rank 1 to it.
std::array<Floats, 2> results_of(const std::string& type, std::int64_t root) {
  std::array<Floats, 2> results;
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    test::ProgramRun run(one_collective(type, root), all_ops(), *device);
    run.context().communicator = &communicator;
    run.set(0, communicator.rank() == 0 ? Floats{1, 2, 3} : Floats{10, 20, 30});
    run.run();
    results[static_cast<std::size_t>(communicator.rank())] = run.get(0);
  });
  return results;
}

TEST_CASE("reduce sums the whole tensor to its root, in place") {
  CHECK(results_of("reduce", 0)[0] == Floats{11, 22, 33});
  CHECK(results_of("reduce", 1)[1] == Floats{11, 22, 33});
}

TEST_CASE("broadcast gives everybody the whole tensor of its root") {
  for (const Floats& of_rank : results_of("broadcast", 0)) CHECK(of_rank == Floats{1, 2, 3});
  for (const Floats& of_rank : results_of("broadcast", 1)) CHECK(of_rank == Floats{10, 20, 30});
}

TEST_CASE("gather_parameter takes what the owner broadcasts") {
  Program receiver;
  Builder builder(receiver, all_ops());
  const ValueId y = builder
                        .add({.type = "gather_parameter",
                              .attributes = {{"shape", Shape{3}}, {"owner", std::int64_t{1}}},
                              .name = "y"})
                        .front();
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    const bool is_owner = communicator.rank() == 1;
    test::ProgramRun run(is_owner ? one_collective("broadcast", 1) : receiver, all_ops(), *device);
    run.context().communicator = &communicator;
    if (is_owner) run.set(0, Floats{1, 2, 3});
    run.run();
    CHECK(run.get(is_owner ? 0 : y) == Floats{1, 2, 3});
  });
}

TEST_CASE("reduce and broadcast without a communicator are errors") {
  const auto device = make_cpu_device();
  test::ProgramRun reduce(one_collective("reduce", 0), all_ops(), *device);
  CHECK_THROWS_WITH_AS(reduce.run(), "reduce of x runs without a communicator", Error);
  test::ProgramRun broadcast(one_collective("broadcast", 0), all_ops(), *device);
  CHECK_THROWS_WITH_AS(broadcast.run(), "broadcast of x runs without a communicator", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::rooted_collectives_test
