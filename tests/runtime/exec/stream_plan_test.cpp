#include "runtime/exec/stream_plan.h"

#include <doctest/doctest.h>

#include "runtime/exec/schedule.h"
#include "runtime/graph/communicator_of.h"
#include "runtime/kernels/streams.h"

namespace fleetrun::runtime::stream_plan_test {
namespace {

// Ops on values of a program, planned.
struct Sketch {
  Program program;

  explicit Sketch(int values) {
    for (int i = 0; i < values; ++i)
      program.add_value({.name = "x" + std::to_string(i), .shape = {16}, .kind = ValueKind::gradient});
  }
  void op(std::vector<ValueId> reads, std::vector<ValueId> writes, Role role = Role::forward) {
    program.ops.push_back(
        {.type = "any", .inputs = std::move(reads), .outputs = std::move(writes), .role = role});
  }
  StreamPlan plan() const {
    return plan_streams(program, plan_schedule(program, std::vector<OpMemory>(program.ops.size())).graph);
  }
};

TEST_CASE("a program without collectives works on the compute stream and waits for nothing") {
  Sketch sketch(2);
  sketch.op({}, {0});
  sketch.op({0}, {1});
  const StreamPlan plan = sketch.plan();
  CHECK(plan.stream == std::vector<int>{kComputeStream, kComputeStream});
  CHECK(plan.waits == std::vector<std::vector<OpId>>{{}, {}});
  CHECK(plan.marked == std::vector<bool>{false, false});
  CHECK(plan.first.empty());
  CHECK(plan.last.empty());
}

TEST_CASE("a collective waits for what it sums, and the update waits for the collective") {
  Sketch sketch(1);
  sketch.op({}, {0}, Role::backward);
  sketch.op({0}, {0}, Role::communication);
  sketch.op({0}, {}, Role::optimize);
  const StreamPlan plan = sketch.plan();
  CHECK(plan.stream == std::vector<int>{kComputeStream, kFirstCommunicatorStream, kComputeStream});
  CHECK(plan.waits == std::vector<std::vector<OpId>>{{}, {0}, {1}});
  CHECK(plan.marked == std::vector<bool>{true, true, false});
}

TEST_CASE("each communicator has a stream, which waits for no other's") {
  Sketch sketch(2);
  sketch.op({}, {0}, Role::backward);
  sketch.op({}, {1}, Role::backward);
  sketch.op({0}, {0}, Role::communication);
  sketch.op({1}, {1}, Role::communication);
  set_communicator(sketch.program.ops[3], 1);
  const StreamPlan plan = sketch.plan();
  CHECK(plan.stream == std::vector<int>{kComputeStream, kComputeStream, kFirstCommunicatorStream,
                                        kFirstCommunicatorStream + 1});
  CHECK(plan.waits == std::vector<std::vector<OpId>>{{}, {}, {0}, {1}});
  CHECK(plan.last == std::vector<OpId>{2, 3});
}

TEST_CASE("nobody waits for an op that another one which it waits for has waited for") {
  Sketch sketch(2);
  sketch.op({}, {0}, Role::backward);
  sketch.op({}, {1}, Role::backward);
  sketch.op({0}, {0}, Role::communication);
  sketch.op({0, 1}, {1}, Role::communication);
  sketch.op({0, 1}, {}, Role::optimize);
  const StreamPlan plan = sketch.plan();
  CHECK(plan.waits == std::vector<std::vector<OpId>>{{}, {}, {0}, {1}, {3}});
  CHECK(plan.marked == std::vector<bool>{true, true, false, true, false});
}

TEST_CASE("collectives at the ends of a program are tied to the runs before and after") {
  Sketch sketch(2);
  sketch.op({0}, {0}, Role::communication);
  sketch.op({1}, {1}, Role::communication);
  const StreamPlan plan = sketch.plan();
  CHECK(plan.first == std::vector<OpId>{0});
  CHECK(plan.last == std::vector<OpId>{1});
  CHECK(plan.marked == std::vector<bool>{false, true});
}

}  // namespace
}  // namespace fleetrun::runtime::stream_plan_test
