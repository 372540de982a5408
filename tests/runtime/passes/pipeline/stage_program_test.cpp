#include "runtime/passes/pipeline/stage_program.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "runtime/ops/rules/dropout.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/pipeline/assign_stages.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::stage_program_test {
namespace {

// Two layers without biases, the second with half the work.
const std::string kValues =
    "feed image f32[2,4]\n"
    "feed d f32[2,2]\n"
    "feed rate f32[1]\n"
    "parameter a.w f32[4,4]\n"
    "parameter b.w f32[2,4]\n"
    "activation a f32[2,4]\n"
    "activation b f32[2,2]\n"
    "activation a@GRAD f32[2,4]\n"
    "gradient b.w@GRAD f32[2,4] of b.w\n"
    "gradient a.w@GRAD f32[4,4] of a.w\n";

const std::string kWhole =
    kValues +
    "fc x=image w=a.w -> y=a {} forward\n"
    "fc x=a w=b.w -> y=b {} forward\n"
    "fc_grad_input w=b.w dy=d -> dx=a@GRAD {input_shape=[2,4]} backward\n"
    "fc_grad_weights x=a dy=d -> dw=b.w@GRAD {} backward\n"
    "fc_grad_weights x=image dy=a@GRAD -> dw=a.w@GRAD {} backward\n"
    "sgd param=b.w grad=b.w@GRAD learning_rate=rate -> param=b.w {weight_decay=0} optimize\n"
    "sgd param=a.w grad=a.w@GRAD learning_rate=rate -> param=a.w {weight_decay=0} optimize\n"
    "fetch b\n";

Program in_two_stages() {
  Program program = parse_program(kWhole, all_ops());
  const job::StrategySpec strategy;
  const PassContext context = {.ops = all_ops(), .strategy = strategy, .stages = 2};
  cut_forward(program, context);
  assign_stages(program, context);
  return program;
}

std::string text_of_stage(int stage, int micro_batches) {
  const Program program =
      stage_program(in_two_stages(), {.place = {stage, 2}, .micro_batches = micro_batches});
  verify(program, all_ops());
  std::string ops;
  std::istringstream text(print_program(program, all_ops()));
  for (std::string line; std::getline(text, line);)
    if (line.find(" -> ") != std::string::npos || line.starts_with("fetch")) ops += line + "\n";
  return ops;
}

TEST_CASE("the first stage sends values, receives gradients, and updates with their sum") {
  CHECK(text_of_stage(0, 2) ==
        "fc x=image.m0 w=a.w -> y=a.m0 {} forward\n"
        "send x=a.m0 -> {} communication\n"
        "fc x=image.m1 w=a.w -> y=a.m1 {} forward after a.m0\n"
        "send x=a.m1 -> {} communication\n"
        "recv -> x=a@GRAD.m0 {communicator=1; dtype=\"f32\"; shape=[2,4]} communication after a.m1\n"
        "fc_grad_weights x=image.m0 dy=a@GRAD.m0 -> dw=a.w@GRAD.m0 {} backward after a.m1,a@GRAD.m0\n"
        "recv -> x=a@GRAD.m1 {communicator=1; dtype=\"f32\"; shape=[2,4]} communication after a.w@GRAD.m0\n"
        "fc_grad_weights x=image.m1 dy=a@GRAD.m1 -> dw=a.w@GRAD.m1 {} backward after "
        "a.w@GRAD.m0,a@GRAD.m1\n"
        "elementwise_add x=a.w@GRAD.m0 y=a.w@GRAD.m1 -> sum=a.w@GRAD {} backward after a.w@GRAD.m1\n"
        "sgd param=a.w grad=a.w@GRAD learning_rate=rate -> param=a.w {weight_decay=0} optimize after "
        "a.w@GRAD\n");
}

TEST_CASE("the last stage receives values, sends gradients, and has the results") {
  CHECK(text_of_stage(1, 2) ==
        "fetch b.m0\n"
        "fetch b.m1\n"
        "recv -> x=a.m0 {dtype=\"f32\"; shape=[2,4]} communication\n"
        "fc x=a.m0 w=b.w -> y=b.m0 {} forward after a.m0\n"
        "fc_grad_input dy=d.m0 w=b.w -> dx=a@GRAD.m0 {input_shape=[2,4]} backward after b.m0\n"
        "fc_grad_weights x=a.m0 dy=d.m0 -> dw=b.w@GRAD.m0 {} backward after a@GRAD.m0\n"
        "recv -> x=a.m1 {dtype=\"f32\"; shape=[2,4]} communication after b.w@GRAD.m0\n"
        "send x=a@GRAD.m0 -> {communicator=1} communication\n"
        "fc x=a.m1 w=b.w -> y=b.m1 {} forward after b.w@GRAD.m0,a.m1\n"
        "fc_grad_input dy=d.m1 w=b.w -> dx=a@GRAD.m1 {input_shape=[2,4]} backward after b.m1\n"
        "fc_grad_weights x=a.m1 dy=d.m1 -> dw=b.w@GRAD.m1 {} backward after a@GRAD.m1\n"
        "elementwise_add x=b.w@GRAD.m0 y=b.w@GRAD.m1 -> sum=b.w@GRAD {} backward after b.w@GRAD.m1\n"
        "send x=a@GRAD.m1 -> {communicator=1} communication\n"
        "sgd param=b.w grad=b.w@GRAD learning_rate=rate -> param=b.w {weight_decay=0} optimize after "
        "b.w@GRAD\n");
}

TEST_CASE("each micro-batch drops other elements") {
  Program program = parse_program(
      "feed image f32[2,4]\nparameter a.w f32[4,4]\nactivation a f32[2,4]\nactivation b f32[2,4]\n"
      "fc x=image w=a.w -> y=a {} forward\n"
      "dropout x=a -> y=b {key=3; p=0.5} forward\n"
      "fetch b\n",
      all_ops());
  constexpr int kMicroBatches = 64;
  const Program stage = stage_program(program, {.place = {0, 1}, .micro_batches = kMicroBatches});
  std::set<std::uint64_t> draws;
  for (const Op& op : stage.ops)
    if (op.type == "dropout")
      draws.insert(
          ops::DropoutDraw{.key = static_cast<std::uint32_t>(std::get<std::int64_t>(op.attributes.at("key")))}
              .high());
  CHECK(draws.size() == kMicroBatches);
}

TEST_CASE("the forward part is cut where the more expensive of two stages is the cheapest") {
  Program program = parse_program(kWhole, all_ops());
  std::vector<std::string> messages;
  const job::StrategySpec strategy;
  cut_forward(program, {.ops = all_ops(), .strategy = strategy, .messages = &messages, .stages = 2});
  std::vector<std::int64_t> owners;
  for (const Op& op : program.ops)
    if (op.role == Role::forward) owners.push_back(std::get<std::int64_t>(op.attributes.at("owner")));
  CHECK(owners == std::vector<std::int64_t>{0, 1});
  CHECK(messages.size() == 1);
}

TEST_CASE("a stage without parameters is none") {
  Program program = parse_program(kWhole, all_ops());
  const job::StrategySpec strategy;
  CHECK_THROWS_WITH_AS(
      cut_forward(program, {.ops = all_ops(), .strategy = strategy, .stages = 3}),
      "strategy.pipeline: the model can be cut into 2 stages, found 3 ranks, wanted 2 or fewer", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::stage_program_test
