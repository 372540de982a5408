#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::fuse_optimizers_test {
namespace {

const std::string kValues =
    "feed rate f32[1]\n"
    "parameter a f32[2] constant 0.0\n"
    "state a.velocity f32[2] constant 0.0 of a\n"
    "gradient a@GRAD f32[2] of a\n"
    "parameter b f32[3] constant 0.0\n"
    "state b.velocity f32[3] constant 0.0 of b\n"
    "gradient b@GRAD f32[3] of b\n"
    "fill -> y=b@GRAD {shape=[3]; value=1.0} backward\n"
    "fill -> y=a@GRAD {shape=[2]; value=1.0} backward\n";

std::string momentum(const std::string& a, const std::string& grad, const std::string& velocity,
                     double decay) {
  return "momentum param=" + a + " grad=" + grad + " velocity=" + velocity +
         " learning_rate=rate -> param=" + a + " velocity=" + velocity +
         " {mu=0.9; use_nesterov=false; weight_decay=" + (decay > 0 ? "0.5" : "0.0") + "} optimize\n";
}

TEST_CASE(
    "updates that differ in their parameters alone become one, and the published line tells the numbers") {
  const test::PassResult result =
      test::run_pass(fuse_optimizers, kValues + momentum("b", "b@GRAD", "b.velocity", 0) +
                                          momentum("a", "a@GRAD", "a.velocity", 0));
  CHECK(result.text == kValues + momentum("b,a", "b@GRAD,a@GRAD", "b.velocity,a.velocity", 0));
  CHECK(
      result.messages ==
      std::vector<std::string>{
          "Find momentum operators : 2, and 2 for dense gradients. To make the speed faster, those optimization are fused during training."});
}

TEST_CASE("updates with other settings stay apart") {
  const std::string before =
      kValues + momentum("b", "b@GRAD", "b.velocity", 0.5) + momentum("a", "a@GRAD", "a.velocity", 0);
  CHECK(test::run_pass(fuse_optimizers, before).text == before);
}

}  // namespace
}  // namespace fleetrun::runtime::fuse_optimizers_test
