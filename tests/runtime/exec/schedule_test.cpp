#include "runtime/exec/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/graph/communicator_of.h"

namespace fleetrun::runtime::schedule_test {
namespace {

// A program of values x0, x1, ... of 64 bytes each, with ops named by what they read and write.
struct Sketch {
  Program program;

  explicit Sketch(int values) {
    for (int i = 0; i < values; ++i) program.add_value({.name = "x" + std::to_string(i), .shape = {16}});
  }
  void op(std::vector<ValueId> reads, std::vector<ValueId> writes, Role role = Role::forward) {
    program.ops.push_back(
        {.type = "any", .inputs = std::move(reads), .outputs = std::move(writes), .role = role});
  }
  Schedule plan() const { return plan_schedule(program, std::vector<OpMemory>(program.ops.size())); }
  // As if each op could write over its first input.
  Schedule plan_in_place() const {
    std::vector<OpMemory> memory(program.ops.size());
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (!program.ops[i].inputs.empty())
        memory[i].may_share = {{program.ops[i].outputs.front(), program.ops[i].inputs.front()}};
    return plan_schedule(program, memory);
  }
};

bool waits(const Schedule& schedule, int after, int before) {
  const std::vector<int>& list = schedule.graph.successors[static_cast<std::size_t>(before)];
  return std::find(list.begin(), list.end(), after) != list.end();
}

TEST_CASE("a reader waits for the writer") {
  Sketch sketch(2);
  sketch.op({}, {0});
  sketch.op({0}, {1});
  const Schedule schedule = sketch.plan();
  CHECK(waits(schedule, 1, 0));
  CHECK(schedule.graph.dependencies == std::vector<int>{0, 1});
}

TEST_CASE("an update in place waits for those who read the old value, and later readers wait for it") {
  Sketch sketch(3);
  sketch.program.value(0).kind = ValueKind::parameter;
  sketch.op({0}, {1});  // reads the parameter
  sketch.op({0}, {0}, Role::optimize);
  sketch.op({0}, {2});
  const Schedule schedule = sketch.plan();
  CHECK(waits(schedule, 1, 0));
  CHECK(waits(schedule, 2, 1));
  CHECK_FALSE(schedule.value_offsets[0]);  // parameters do not live in the arena
}

TEST_CASE("collectives run in the order of the program and are urgent") {
  Sketch sketch(2);
  for (ValueId id = 0; id < 2; ++id) sketch.program.value(id).kind = ValueKind::gradient;
  sketch.op({}, {0}, Role::backward);
  sketch.op({}, {1}, Role::backward);
  sketch.op({1}, {1}, Role::communication);
  sketch.op({0}, {0}, Role::communication);
  const Schedule schedule = sketch.plan();
  CHECK(waits(schedule, 3, 2));
  CHECK(schedule.graph.urgent == std::vector<bool>{false, false, true, true});
}

TEST_CASE("collectives of one communicator run in the order of the program, those of two beside each other") {
  Sketch sketch(3);
  for (ValueId id = 0; id < 3; ++id) {
    sketch.program.value(id).kind = ValueKind::gradient;
    sketch.op({id}, {id}, Role::communication);
  }
  set_communicator(sketch.program.ops[1], 1);
  Schedule schedule = sketch.plan();
  CHECK(schedule.graph.lane == std::vector<int>{0, 1, 0});
  CHECK_FALSE(waits(schedule, 1, 0));
  CHECK_FALSE(waits(schedule, 2, 1));
  CHECK(waits(schedule, 2, 0));
  chain_all_collectives(sketch.program, schedule.graph);
  CHECK(waits(schedule, 1, 0));
  CHECK(waits(schedule, 2, 1));
}

TEST_CASE("whoever moves into reused memory waits until its last reader has gone") {
  // Two independent chains: x0 -> x1 and x2 -> x3. With reuse, x2 takes the memory of x0.
  Sketch sketch(4);
  sketch.op({}, {0});
  sketch.op({0}, {1});
  sketch.op({}, {2});
  sketch.op({2}, {3});
  const Schedule schedule = sketch.plan();
  CHECK(schedule.arena_bytes < schedule.unshared_bytes);
  bool reused = false;
  for (int earlier = 0; earlier < 2; ++earlier)
    if (schedule.value_offsets[static_cast<std::size_t>(earlier)] == schedule.value_offsets[2]) {
      reused = true;
      CHECK(waits(schedule, 2, 1));
    }
  CHECK(reused);
}

TEST_CASE("the memory of a fetched value is not reused within the run") {
  Sketch sketch(4);
  sketch.program.fetches = {0};
  sketch.op({}, {0});
  sketch.op({0}, {1});
  sketch.op({1}, {2});
  sketch.op({2}, {3});
  const Schedule schedule = sketch.plan();
  for (int other = 1; other < 4; ++other)
    CHECK(schedule.value_offsets[0] != schedule.value_offsets[static_cast<std::size_t>(other)]);
}

TEST_CASE("scratch memory is of its op alone while that runs") {
  Sketch sketch(2);
  sketch.op({}, {0});
  sketch.op({0}, {1});
  const Schedule schedule = plan_schedule(sketch.program, {{}, {.scratch_bytes = 64}});
  CHECK(schedule.scratch_offsets[1] != schedule.value_offsets[0]);
  CHECK(schedule.scratch_offsets[1] != schedule.value_offsets[1]);
  CHECK(schedule.arena_bytes == 3 * 64);
}

TEST_CASE("an output takes the place of an input that nobody reads any more") {
  Sketch sketch(3);
  sketch.op({}, {0});
  sketch.op({0}, {1});
  sketch.op({1}, {2});
  const Schedule schedule = sketch.plan_in_place();
  CHECK(schedule.in_place_pairs == 2);
  CHECK(schedule.arena_bytes == 64);
  CHECK(schedule.unshared_bytes == 3 * 64);
}

TEST_CASE("an input that is read later, fetched or no activation keeps its place") {
  Sketch read_later(3);
  read_later.op({}, {0});
  read_later.op({0}, {1});
  read_later.op({0}, {2});
  const Schedule schedule = read_later.plan_in_place();
  CHECK(schedule.value_offsets[0] != schedule.value_offsets[1]);
  CHECK(schedule.value_offsets[0] == schedule.value_offsets[2]);
  CHECK(waits(schedule, 2, 1));  // x2 overwrites what op 1 reads

  Sketch fetched(2);
  fetched.program.fetches = {0};
  fetched.op({}, {0});
  fetched.op({0}, {1});
  CHECK(fetched.plan_in_place().in_place_pairs == 0);

  Sketch parameter(2);
  parameter.program.value(0).kind = ValueKind::parameter;
  parameter.op({0}, {1});
  CHECK(parameter.plan_in_place().in_place_pairs == 0);
}

TEST_CASE("values of unlike size do not share") {
  Sketch sketch(2);
  sketch.program.value(1).shape = {8};
  sketch.op({}, {0});
  sketch.op({0}, {1});
  CHECK(sketch.plan_in_place().in_place_pairs == 0);
}

}  // namespace
}  // namespace fleetrun::runtime::schedule_test
