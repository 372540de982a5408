#include "runtime/passes/insert_all_reduce.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"
#include "support/toy_ops.h"

namespace fleetrun::runtime {
namespace {

const std::string kValues =
    "feed image f32[1]\n"
    "parameter a f32[1] constant 0.0\n"
    "activation loss f32[1]\n"
    "activation loss@GRAD f32[1]\n"
    "gradient a@GRAD f32[1] of a\n";
const std::string kProgram = kValues +
                             "times x=image w=a -> y=loss {} forward\n"
                             "fill -> y=loss@GRAD {shape=[1]; value=1.0} backward\n"
                             "times_grad_w x=image dy=loss@GRAD -> y=a@GRAD {} backward\n"
                             "update param=a grad=a@GRAD -> param=a {} optimize\n";

std::string after_pass(int world_size, const job::StrategySpec& strategy = {}) {
  Program program = parse_program(kProgram, toy_ops());
  insert_all_reduce(program, {.ops = toy_ops(), .strategy = strategy, .world_size = world_size});
  return print_program(program, toy_ops());
}

TEST_CASE("every gradient is summed right after it is made, and the loss gradient carries the mean") {
  CHECK(after_pass(4) == kValues +
                             "times x=image w=a -> y=loss {} forward\n"
                             "fill -> y=loss@GRAD {shape=[1]; value=0.25} backward\n"
                             "times_grad_w x=image dy=loss@GRAD -> y=a@GRAD {} backward\n"
                             "all_reduce x=a@GRAD -> x=a@GRAD {op=\"sum\"} communication\n"
                             "update param=a grad=a@GRAD -> param=a {} optimize\n");
}

TEST_CASE("gradient_scale_strategy One leaves the loss gradient at 1") {
  job::StrategySpec strategy;
  strategy.build_strategy.gradient_scale_strategy = job::GradientScale::One;
  CHECK(after_pass(4, strategy).find("value=1.0") != std::string::npos);
}

TEST_CASE("one rank alone sums nothing") { CHECK(after_pass(1) == kProgram); }

}  // namespace
}  // namespace fleetrun::runtime
