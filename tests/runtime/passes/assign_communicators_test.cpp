#include <doctest/doctest.h>

#include "runtime/graph/communicator_of.h"
#include "runtime/graph/program_text.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime::assign_communicators_test {
namespace {

const std::string kValues =
    "parameter a f32[1] constant 0.0\n"
    "gradient a@GRAD f32[1] of a\n"
    "parameter b f32[1] constant 0.0\n"
    "gradient b@GRAD f32[1] of b\n"
    "parameter c f32[1] constant 0.0\n"
    "gradient c@GRAD f32[1] of c\n";

std::string all_reduce(const std::string& name, const std::string& communicator) {
  return "all_reduce x=" + name + "@GRAD -> x=" + name + "@GRAD {" + communicator +
         "op=\"sum\"} communication\n";
}

std::string fill(const std::string& name) {
  return "fill -> y=" + name + "@GRAD {shape=[1]; value=1.0} backward\n";
}

const std::string kFills = fill("a") + fill("b") + fill("c");

std::string after_pass(int communicators) {
  Program program = parse_program(
      kValues + kFills + all_reduce("a", "") + all_reduce("b", "") + all_reduce("c", ""), all_ops());
  job::StrategySpec strategy;
  strategy.nccl_comm_num = communicators;
  assign_communicators(program, {.ops = all_ops(), .strategy = strategy, .world_size = 2});
  return print_program(program, all_ops());
}

TEST_CASE("all-reduce number i goes by communicator i modulo their number") {
  CHECK(after_pass(2) ==
        kValues + kFills + all_reduce("a", "") + all_reduce("b", "communicator=1; ") + all_reduce("c", ""));
  CHECK(after_pass(3) == kValues + kFills + all_reduce("a", "") + all_reduce("b", "communicator=1; ") +
                             all_reduce("c", "communicator=2; "));
}

TEST_CASE("one communicator changes nothing") {
  CHECK(after_pass(1) == kValues + kFills + all_reduce("a", "") + all_reduce("b", "") + all_reduce("c", ""));
}

TEST_CASE("an op says its communicator only when it is not the first") {
  Op op;
  CHECK(communicator_of(op) == 0);
  set_communicator(op, 2);
  CHECK(communicator_of(op) == 2);
  set_communicator(op, 0);
  CHECK(op.attributes.empty());
}

}  // namespace
}  // namespace fleetrun::runtime::assign_communicators_test
