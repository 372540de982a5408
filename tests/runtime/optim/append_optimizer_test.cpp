#include "runtime/optim/append_optimizer.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"

namespace fleetrun::runtime::append_optimizer_test {
namespace {

// What the optimizer adds to a program with one parameter w [2,3] and its gradient.
std::string added_by(const job::OptimizerSpec& optimizer) {
  Program program = parse_program(
      "parameter w f32[2,3] constant 0.0\n"
      "gradient w@GRAD f32[2,3] of w\n"
      "fill -> y=w@GRAD {shape=[2,3]; value=1.0} backward\n",
      all_ops());
  const std::string before = print_program(program, all_ops());
  Builder builder(program, all_ops());
  append_optimizer(builder, optimizer, program.of_kind(ValueKind::gradient));
  verify(program, all_ops());
  std::string added;
  std::string text = print_program(program, all_ops());
  for (std::size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at + 1);
    if (before.find(line) == std::string::npos) added += line;
    at += line.size();
  }
  return added;
}

TEST_CASE("adam keeps two moments and two powers per parameter; the powers start at their bases") {
  CHECK(added_by({.name = job::OptimizerName::adam, .beta1 = 0.75, .beta2 = 0.875, .epsilon = 0.5}) ==
        "feed learning_rate f32[1]\n"
        "state w.moment1 f32[2,3] constant 0.0 of w\n"
        "state w.moment2 f32[2,3] constant 0.0 of w\n"
        "state w.beta1_pow f32[1] constant 0.75 of w\n"
        "state w.beta2_pow f32[1] constant 0.875 of w\n"
        "adam param=w grad=w@GRAD moment1=w.moment1 moment2=w.moment2 beta1_pow=w.beta1_pow "
        "beta2_pow=w.beta2_pow learning_rate=learning_rate -> param=w moment1=w.moment1 "
        "moment2=w.moment2 beta1_pow=w.beta1_pow beta2_pow=w.beta2_pow "
        "{beta1=0.75; beta2=0.875; epsilon=0.5; weight_decay=0.0} optimize\n");
}

TEST_CASE("momentum keeps a velocity, sgd nothing") {
  CHECK(added_by({.name = job::OptimizerName::momentum}) ==
        "feed learning_rate f32[1]\n"
        "state w.velocity f32[2,3] constant 0.0 of w\n"
        "momentum param=w grad=w@GRAD velocity=w.velocity learning_rate=learning_rate -> "
        "param=w velocity=w.velocity {mu=0.9; use_nesterov=false; weight_decay=0.0} optimize\n");
  CHECK(added_by({.name = job::OptimizerName::sgd}) ==
        "feed learning_rate f32[1]\n"
        "sgd param=w grad=w@GRAD learning_rate=learning_rate -> param=w "
        "{weight_decay=0.0} optimize\n");
}

}  // namespace
}  // namespace fleetrun::runtime::append_optimizer_test
