#include "runtime/optim/merge_gradients.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"
#include "runtime/optim/narrow_gradients.h"

namespace fleetrun::runtime::merge_gradients_test {
namespace {

const std::string kParameter = "parameter w f32[2] constant 0.0\n";
const std::string kBackward = "fill -> y=w@GRAD {shape=[2]; value=1.0} backward\n";

Program program_with_gradient() {
  return parse_program(kParameter + "gradient w@GRAD f32[2] of w\n" + kBackward, all_ops());
}

TEST_CASE("a merged gradient takes the place of the gradient of a step") {
  Program program = program_with_gradient();
  Builder builder(program, all_ops());
  merge_gradients(builder, {.k_steps = 4, .avg = true});
  verify(program, all_ops());
  CHECK(print_program(program, all_ops()) ==
        kParameter +
            "gradient w@GRAD f32[2] of w\n"
            "activation w@GRAD.step f32[2] of w\n"
            "state w.merged f32[2] constant 0.0 of w\n"
            "fill -> y=w@GRAD.step {shape=[2]; value=1.0} backward\n"
            "merge_gradient grad=w@GRAD.step merged=w.merged -> out=w@GRAD merged=w.merged "
            "{k_steps=4; scale=0.25} backward\n");
  CHECK(merged_gradients_of(program) == std::vector<ValueId>{program.find("w.merged")});
  CHECK(steps_per_update(program) == 4);
  CHECK(steps_per_update(program_with_gradient()) == 1);
}

TEST_CASE("a gradient that travels in bf16 is f32 before and after") {
  Program program = program_with_gradient();
  Builder builder(program, all_ops());
  const std::vector<ValueId> read = narrow_gradients(builder, DType::bf16);
  verify(program, all_ops());
  CHECK(read == std::vector<ValueId>{program.find("w@GRAD.summed")});
  CHECK(print_program(program, all_ops()) ==
        kParameter +
            "activation w@GRAD f32[2] of w\n"
            "gradient w@GRAD.bf16 bf16[2] of w\n"
            "activation w@GRAD.summed f32[2] of w\n" +
            kBackward +
            "cast_gradient grad=w@GRAD param=w -> out=w@GRAD.bf16 {dtype=\"bf16\"} backward\n"
            "cast x=w@GRAD.bf16 -> y=w@GRAD.summed {dtype=\"f32\"} optimize\n");
}

}  // namespace
}  // namespace fleetrun::runtime::merge_gradients_test
