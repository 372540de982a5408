// The passes of strategy.sharding.
#include <doctest/doctest.h>

#include <map>

#include "job/spec/settle_strategy.h"
#include "runtime/passes/gather_parameters.h"
#include "runtime/passes/keep_own_updates.h"
#include "runtime/passes/passes.h"
#include "support/built_model.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::sharding_test {
namespace {

job::StrategySpec sharding(int stage, int ranks, std::optional<int> degree = std::nullopt) {
  job::StrategySpec strategy;
  strategy.sharding = true;
  strategy.sharding_configs.stage = stage;
  strategy.sharding_configs.sharding_degree = degree;
  return job::settle_strategy(strategy, {.all = ranks, .of_node = ranks}).strategy;
}

const std::string kUpdate =
    "feed rate f32[1]\n"
    "parameter a f32[2] constant 0.0\n"
    "gradient a@GRAD f32[2] of a\n";
const std::string kMake = "fill -> y=a@GRAD {shape=[2]; value=1.0} backward\n";

TEST_CASE("owners in several groups sum the gradient of a parameter that they all own") {
  const test::PassResult result = test::run_pass(
      insert_reduce,
      kUpdate + kMake + "sgd param=a grad=a@GRAD learning_rate=rate -> param=a {weight_decay=0.0} optimize\n",
      sharding(1, 4, 2), all_ops(), 4);
  CHECK(result.text ==
        kUpdate + kMake +
            "reduce x=a@GRAD -> x=a@GRAD {communicator=1; op=\"sum\"; root=0} communication\n"
            "all_reduce x=a@GRAD -> x=a@GRAD {communicator=2; op=\"sum\"; owner=0} communication\n"
            "sgd param=a grad=a@GRAD learning_rate=rate -> param=a {owner=0; weight_decay=0.0} optimize\n"
            "broadcast x=a -> x=a {communicator=1; roots=[0]} communication\n");
}

TEST_CASE("each rank averages the weights that it owns") {
  const std::string values =
      "feed rate f32[1]\n"
      "parameter a f32[2] constant 0.0\n"
      "gradient a@GRAD f32[2] of a\n"
      "parameter b f32[3] constant 0.0\n"
      "gradient b@GRAD f32[3] of b\n"
      "state a.ema f32[2] constant 0.0 of a\n"
      "state b.ema f32[3] constant 0.0 of b\n"
      "state pow f32[1] constant 0.5\n"
      "fill -> y=a@GRAD {shape=[2]; value=1.0} backward\n"
      "fill -> y=b@GRAD {shape=[3]; value=1.0} backward\n"
      "sgd param=a grad=a@GRAD learning_rate=rate -> param=a {owner=0; weight_decay=0.0} optimize\n"
      "sgd param=b grad=b@GRAD learning_rate=rate -> param=b {owner=1; weight_decay=0.0} optimize\n";
  const test::PassResult result = test::run_pass(
      divide_averages,
      values +
          "average_weights param=a,b average=a.ema,b.ema decay_pow=pow -> average=a.ema,b.ema decay_pow=pow {decay=0.5} optimize\n");
  CHECK(
      result.text ==
      values +
          "average_weights param=a average=a.ema decay_pow=pow -> average=a.ema decay_pow=pow {decay=0.5; owner=0} optimize\n"
          "average_weights param=b average=b.ema decay_pow=pow -> average=b.ema decay_pow=pow {decay=0.5; owner=1} optimize\n");
}

const std::string kTwoLayers =
    "feed x f32[2,3]\n"
    "parameter v f32[4,3] constant 0.0\n"
    "parameter w f32[5,4] constant 0.0\n"
    "activation h f32[2,4]\n"
    "activation y f32[2,5]\n"
    "activation y@GRAD f32[2,5]\n"
    "activation h@GRAD f32[2,4]\n";
const std::string kGradient = "fill -> y=y@GRAD {shape=[2,5]; value=1.0} backward\n";

// Of the program with two layers, in which rank 1 keeps v, and rank 0 w.
Program gathered() {
  Program program =
      parse_program(kTwoLayers +
                        "fc x=x w=v -> y=h {} forward\n"
                        "fc x=h w=w -> y=y {} forward\n" +
                        kGradient + "fc_grad_input dy=y@GRAD w=w -> dx=h@GRAD {input_shape=[2,4]} backward\n",
                    all_ops());
  gather_parameters(program, {{program.find("v"), 1}, {program.find("w"), 0}}, 0);
  verify(program, all_ops());
  return program;
}

std::string gather(const std::string& x, const std::string& y, const std::string& shape, int owner) {
  return "gather_parameter x=" + x + " -> y=" + y + " {owner=" + std::to_string(owner) + "; shape=[" + shape +
         "]} communication\n";
}

TEST_CASE("parameters are gathered one layer ahead of their use, and again for the backward pass") {
  CHECK(print_program(gathered(), all_ops()) ==
        kTwoLayers +
            "activation v.forward f32[4,3]\n"
            "activation w.forward f32[5,4]\n"
            "activation w.backward f32[5,4]\n" +
            gather("v", "v.forward", "4,3", 1) + gather("w", "w.forward", "5,4", 0) +
            "fc x=x w=v.forward -> y=h {} forward\n" + gather("w", "w.backward", "5,4", 0) +
            "fc x=h w=w.forward -> y=y {} forward\n" + kGradient +
            "fc_grad_input dy=y@GRAD w=w.backward -> dx=h@GRAD {input_shape=[2,4]} backward\n");
}

TEST_CASE("the owner sends a parameter from its place and reads it there; the others have only copies") {
  Program own = gathered();
  keep_own_updates(own, 0);
  verify(own, all_ops());
  CHECK(own.find("v") == kNone);
  CHECK(own.find("w.forward") == kNone);
  const std::string text = print_program(own, all_ops());
  const std::string send = "broadcast x=w -> x=w {owner=0; roots=[0]} communication\n";
  CHECK(text.find("gather_parameter -> y=v.forward {owner=1; shape=[4,3]} communication\n" + send +
                  "fc x=x w=v.forward -> y=h {} forward\n" + send + "fc x=h w=w -> y=y {} forward\n") !=
        std::string::npos);
}

TEST_CASE("what only forms a parameter runs again in the backward pass") {
  Program program = parse_program(
      "feed x bf16[2,3]\nparameter w f32[4,3] constant 0.0\nactivation n bf16[4,3]\nactivation y bf16[2,4]\n"
      "activation y@GRAD bf16[2,4]\nactivation x@GRAD bf16[2,3]\n"
      "cast x=w -> y=n {dtype=\"bf16\"} forward\n"
      "fc x=x w=n -> y=y {} forward\n"
      "relu x=y -> y=y@GRAD {} forward\n"
      "fc_grad_input dy=y@GRAD w=n -> dx=x@GRAD {input_shape=[2,3]} backward\n",
      all_ops());
  gather_parameters(program, {{program.find("w"), 0}}, 0);
  verify(program, all_ops());
  const std::string text = print_program(program, all_ops());
  CHECK(text.find("cast x=w.backward -> y=n.backward {dtype=\"bf16\"} backward\n"
                  "fc_grad_input dy=y@GRAD w=n.backward -> dx=x@GRAD {input_shape=[2,3]} backward\n") !=
        std::string::npos);
}

// Bytes that last from step to step.
struct Kept {
  double parameters = 0, gradients = 0, states = 0;

  explicit Kept(const Program& program) {
    for (const Value& value : program.values) {
      const auto bytes = static_cast<double>(value.bytes());
      if (value.kind == ValueKind::parameter) parameters += bytes;
      if (value.kind == ValueKind::gradient) gradients += bytes;
      if (value.kind == ValueKind::state && value.name.ends_with(".velocity")) states += bytes;
    }
  }
};

TEST_CASE("ResNet-50: a rank keeps 1/ranks of what its stage divides") {
  for (const int ranks : {2, 4})
    for (const int stage : {1, 2, 3}) {
      CAPTURE(ranks);
      CAPTURE(stage);
      Program whole = test::build_model(job::ModelName::resnet50, 102, ranks, sharding(stage, ranks)).program;
      const Kept all(whole);
      if (stage == 3) gather_parameters(whole, owners_of_parameters(whole), 0);
      for (int rank = 0; rank < ranks; ++rank) {
        Program own = whole;
        keep_own_updates(own, rank, stage >= 2 ? OwnGradients::alone : OwnGradients::kept);
        verify(own, all_ops());
        const Kept kept(own);
        const auto part = doctest::Approx(1.0 / ranks).epsilon(0.1);
        CHECK(kept.states / all.states == part);
        CHECK(kept.gradients / all.gradients == (stage >= 2 ? part : doctest::Approx(1)));
        CHECK(kept.parameters / all.parameters == (stage == 3 ? part : doctest::Approx(1)));
      }
    }
}

}  // namespace
}  // namespace fleetrun::runtime::sharding_test
