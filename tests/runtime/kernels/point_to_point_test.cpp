#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/run_op.h"
#include "support/run_world.h"

namespace fleetrun::runtime::point_to_point_test {
namespace {

using test::Floats;

Program one_transfer(const std::string& type) {
  Program program;
  Builder builder(program, all_ops());
  if (type == "send")
    builder.add({.type = "send", .inputs = {{"x", builder.feed("x", {3})}}, .name = "x"});
  else
    builder.add(
        {.type = "recv", .attributes = {{"shape", Shape{3}}, {"dtype", std::string("f32")}}, .name = "x"});
  return program;
}

TEST_CASE("recv gets what send of the other rank gives") {
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    test::ProgramRun run(one_transfer(communicator.rank() == 0 ? "send" : "recv"), all_ops(), *device);
    run.context().communicator = &communicator;
    if (communicator.rank() == 0) run.set(0, Floats{1, 2, 3});
    run.run();
    CHECK(run.get(0) == Floats{1, 2, 3});
  });
}

TEST_CASE("send and recv without a communicator are errors") {
  const auto device = make_cpu_device();
  for (const char* type : {"send", "recv"}) {
    test::ProgramRun run(one_transfer(type), all_ops(), *device);
    CHECK_THROWS_WITH_AS(run.run(), "the transfer of x runs without a communicator", Error);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::point_to_point_test
