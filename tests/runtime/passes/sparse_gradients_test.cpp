#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::sparse_gradients_test {
namespace {

const std::string kValues =
    "feed learning_rate f32[1]\n"
    "parameter large f32[20000] constant 0.0\n"
    "state large.velocity f32[20000] constant 0.0 of large\n"
    "parameter small f32[2] constant 0.0\n"
    "state small.velocity f32[2] constant 0.0 of small\n";
const std::string kSmallUpdate =
    "momentum param=small grad=small@GRAD velocity=small.velocity learning_rate=learning_rate -> param=small "
    "velocity=small.velocity {mu=0.9; use_nesterov=false; weight_decay=0.0} optimize\n";

TEST_CASE("of a large gradient the ranks exchange some elements; small ones, and what clips them, stay") {
  job::StrategySpec strategy;
  strategy.dgc = true;
  strategy.dgc_configs = {.rampup_begin_step = 5, .rampup_step = 2, .sparsity = {0.75, 0.9999}};
  const std::string fills = "fill -> y=large@GRAD {shape=[20000]; value=1.0} backward\n";
  const test::PassResult result = test::run_pass(
      sparse_gradients,
      kValues +
          "gradient large@GRAD f32[20000] of large\n"
          "gradient small@GRAD f32[2] of small\n" +
          fills +
          "fill -> y=small@GRAD {shape=[2]; value=1.0} backward\n"
          "clip_by_norm grad=large@GRAD,small@GRAD -> grad=large@GRAD,small@GRAD {limit=1.0} optimize\n"
          "momentum param=large grad=large@GRAD velocity=large.velocity learning_rate=learning_rate -> param=large "
          "velocity=large.velocity {mu=0.9; use_nesterov=false; weight_decay=0.0} optimize\n" +
          kSmallUpdate,
      strategy, all_ops(), 4);
  const std::string shared = "kept=[5000,2]; ";
  CHECK(
      result.text ==
      kValues +
          "activation large@GRAD f32[20000] of large\n"
          "gradient small@GRAD f32[2] of small\n"
          "state large.residual f32[20000] constant 0.0 of large\n"
          "activation large.message i32[10000]\n"
          "activation large.gathered i32[40000]\n" +
          fills +
          "dgc_select grad=large@GRAD param=large velocity=large.velocity residual=large.residual -> "
          "message=large.message velocity=large.velocity residual=large.residual {" +
          shared +
          "limit=0.5; mu=0.9; rampup_begin_step=5; rampup_step=2; ranks=4; use_nesterov=false; weight_decay=0.0} "
          "backward\n"
          "dgc_exchange grad=large@GRAD message=large.message -> grad=large@GRAD gathered=large.gathered {" +
          shared + "rampup_begin_step=5; rampup_step=2; ranks=4} communication\n" +
          "dgc_scatter grad=large@GRAD gathered=large.gathered -> grad=large@GRAD {" + shared +
          "rampup_begin_step=5; rampup_step=2; ranks=4} backward\n"
          "fill -> y=small@GRAD {shape=[2]; value=1.0} backward\n"
          "clip_by_norm grad=small@GRAD -> grad=small@GRAD {limit=1.0} optimize\n"
          "dgc_momentum param=large grad=large@GRAD velocity=large.velocity learning_rate=learning_rate -> "
          "param=large velocity=large.velocity {mu=0.9; rampup_begin_step=5; use_nesterov=false; weight_decay=0.0} "
          "optimize\n" +
          kSmallUpdate);
  CHECK(
      result.messages ==
      std::vector<std::string>{
          "dgc: 1 large gradient with 20000 of all 20002 elements; each rank sends 2 of these elements after the ramp-up. "
          "Smaller gradients are summed whole"});
}

}  // namespace
}  // namespace fleetrun::runtime::sparse_gradients_test
