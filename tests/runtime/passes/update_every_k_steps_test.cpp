#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::update_every_k_steps_test {
namespace {

TEST_CASE(
    "sums of gradients and updates run in every k_steps-th step, sums inside the forward part in each") {
  const std::string values =
      "feed rate f32[1]\n"
      "parameter w f32[2] constant 0.0\n"
      "gradient w@GRAD f32[2] of w\n"
      "activation sums f32[2]\n"
      "activation overflow f32[1]\n";
  const auto program = [&](const std::string& every) {
    return values +
           "fill -> y=sums {shape=[2]; value=1.0} forward\n"
           "all_reduce x=sums -> x=sums {op=\"sum\"} communication\n"
           "fill -> y=w@GRAD {shape=[2]; value=1.0} backward\n"
           "all_reduce x=w@GRAD -> x=w@GRAD {" +
           every +
           "op=\"sum\"} communication\n"
           "fill -> y=overflow {" +
           every +
           "shape=[1]; value=0.0} optimize\n"
           "all_reduce x=overflow -> x=overflow {" +
           every +
           "op=\"sum\"} communication\n"
           "sgd param=w grad=w@GRAD learning_rate=rate -> param=w {" +
           every + "weight_decay=0.0} optimize\n";
  };
  job::StrategySpec strategy;
  strategy.gradient_merge_configs.k_steps = 4;
  const test::PassResult result = test::run_pass(update_every_k_steps, program(""), strategy);
  CHECK(result.text == program("every=4; "));
  CHECK(result.messages ==
        std::vector<std::string>{
            "gradient_merge: the ranks sum gradients and update parameters once in 4 steps"});
}

}  // namespace
}  // namespace fleetrun::runtime::update_every_k_steps_test
