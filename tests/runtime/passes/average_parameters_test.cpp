#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::average_parameters_test {
namespace {

const std::string kValues =
    "feed learning_rate f32[1]\n"
    "parameter w f32[2] constant 0.0\n"
    "gradient w@GRAD f32[2] of w\n"
    "activation loss f32[1]\n";
const std::string kOps =
    "fill -> y=loss {shape=[1]; value=1.0} forward\n"
    "fill -> y=w@GRAD {shape=[2]; value=1.0} backward\n"
    "sgd param=w grad=w@GRAD learning_rate=learning_rate -> param=w {weight_decay=0.0} optimize\n";

TEST_CASE("localsgd averages the weights after the updates") {
  job::StrategySpec strategy;
  strategy.localsgd = true;
  strategy.localsgd_configs = {.k_steps = 4, .begin_step = 3};
  const test::PassResult result = test::run_pass(average_parameters, kValues + kOps, strategy);
  CHECK(
      result.text ==
      kValues + "state w.snapshot f32[2] constant 0.0 of w\n" + kOps +
          "average_parameters param=w snapshot=w.snapshot -> param=w snapshot=w.snapshot {begin_step=3; k_steps=4} "
          "communication\n");
  CHECK(
      result.messages ==
      std::vector<std::string>{
          "localsgd: the ranks average their parameters in each of the steps 1 to 3, then once in 4 steps"});
}

TEST_CASE("adaptive_localsgd also reads the loss and the learning rate") {
  job::StrategySpec strategy;
  strategy.adaptive_localsgd = true;
  const test::PassResult result = test::run_pass(average_parameters, kValues + kOps, strategy);
  CHECK(result.text.find(
            "average_parameters param=w snapshot=w.snapshot schedule=adaptive_localsgd.schedule loss=loss "
            "learning_rate=learning_rate -> param=w snapshot=w.snapshot "
            "schedule=adaptive_localsgd.schedule {begin_step=1; k_steps=1} communication\n") !=
        std::string::npos);
  CHECK(result.messages ==
        std::vector<std::string>{
            "adaptive_localsgd: the ranks average their parameters in step 1, then once in 1 to 16 "
            "steps, as loss and learning rate say"});
}

}  // namespace
}  // namespace fleetrun::runtime::average_parameters_test
