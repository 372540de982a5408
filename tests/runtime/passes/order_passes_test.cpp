// The passes that add nothing but order.
#include <doctest/doctest.h>

#include "runtime/passes/passes.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::order_passes_test {
namespace {

TEST_CASE("sequential execution: every op comes after the one in front of it") {
  const std::string values =
      "feed x f32[2]\n"
      "activation a f32[2]\n"
      "activation b f32[2]\n"
      "activation c f32[2]\n";
  CHECK(test::run_pass(sequential_execution, values + "relu x=x -> y=a {} forward\n"
                                                      "relu x=x -> y=b {} forward\n"
                                                      "relu x=x -> y=c {} forward\n")
            .text == values +
                         "relu x=x -> y=a {} forward\n"
                         "relu x=x -> y=b {} forward after a\n"
                         "relu x=x -> y=c {} forward after b\n");
}

TEST_CASE("updates come after the ends of the backward pass, one after the other") {
  const std::string values =
      "feed rate f32[1]\n"
      "parameter a f32[2] constant 0.0\n"
      "gradient a@GRAD f32[2] of a\n"
      "parameter b f32[2] constant 0.0\n"
      "gradient b@GRAD f32[2] of b\n"
      "activation z f32[2]\n";
  const std::string backward =
      "fill -> y=z {shape=[2]; value=1.0} backward\n"
      "relu x=z -> y=b@GRAD {} backward\n"
      "relu x=z -> y=a@GRAD {} backward\n";
  const std::string sgd_a =
      "sgd param=a grad=a@GRAD learning_rate=rate -> param=a {weight_decay=0.0} optimize";
  const std::string sgd_b =
      "sgd param=b grad=b@GRAD learning_rate=rate -> param=b {weight_decay=0.0} optimize";
  CHECK(test::run_pass(backward_optimizer_deps, values + backward + sgd_a + "\n" + sgd_b + "\n").text ==
        values + backward + sgd_a + " after b@GRAD,a@GRAD\n" + sgd_b + " after a\n");
}

}  // namespace
}  // namespace fleetrun::runtime::order_passes_test
