#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/compile/build_program.h"
#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime::sync_batch_norm_test {
namespace {

using Lines = std::vector<std::string>;

const std::string kBefore =
    "feed image f32[2,3,4,4]\n"
    "feed dy f32[2,3,4,4]\n"
    "parameter scale f32[3] constant 1.0\n"
    "parameter bias f32[3] constant 0.0\n"
    "state mean f32[3] constant 0.0\n"
    "state variance f32[3] constant 1.0\n"
    "activation bn.y f32[2,3,4,4]\n"
    "activation bn.batch_mean f32[3]\n"
    "activation bn.batch_variance f32[3]\n"
    "activation image@GRAD f32[2,3,4,4]\n"
    "gradient scale@GRAD f32[3] of scale\n"
    "gradient bias@GRAD f32[3] of bias\n";
const std::string kOps =
    "batch_norm x=image scale=scale bias=bias mean=mean variance=variance -> y=bn.y mean=mean "
    "variance=variance batch_mean=bn.batch_mean batch_variance=bn.batch_variance "
    "{epsilon=0.001; momentum=0.75; training=true} forward\n"
    "batch_norm_grad x=image dy=dy scale=scale batch_mean=bn.batch_mean batch_variance=bn.batch_variance -> "
    "dx=image@GRAD dscale=scale@GRAD dbias=bias@GRAD {epsilon=0.001} backward\n";

PassContext context_of(const job::StrategySpec& strategy, Lines& messages) {
  return {.ops = all_ops(), .strategy = strategy, .world_size = 2, .messages = &messages};
}

TEST_CASE("the statistics of a training batch_norm are summed over the ranks, forward and backward") {
  Program program = parse_program(kBefore + kOps, all_ops());
  Lines messages;
  sync_batch_norm(program, context_of({}, messages));
  verify(program, all_ops());
  CHECK(
      print_program(program, all_ops()) ==
      kBefore +
          "activation bn.sums f32[7]\n"
          "activation bn@GRAD.sums f32[7]\n"
          "sync_batch_norm_sums x=image mean=mean -> sums=bn.sums {} forward\n"
          "all_reduce x=bn.sums -> x=bn.sums {op=\"sum\"} communication\n"
          "sync_batch_norm x=image scale=scale bias=bias mean=mean variance=variance sums=bn.sums -> y=bn.y "
          "mean=mean variance=variance batch_mean=bn.batch_mean batch_variance=bn.batch_variance "
          "{epsilon=0.001; momentum=0.75; training=true} forward\n"
          "sync_batch_norm_grad_sums x=image dy=dy batch_mean=bn.batch_mean "
          "batch_variance=bn.batch_variance -> sums=bn@GRAD.sums dscale=scale@GRAD dbias=bias@GRAD {epsilon=0.001} backward\n"
          "all_reduce x=bn@GRAD.sums -> x=bn@GRAD.sums {op=\"sum\"} communication\n"
          "sync_batch_norm_grad x=image dy=dy scale=scale batch_mean=bn.batch_mean "
          "batch_variance=bn.batch_variance sums=bn@GRAD.sums -> dx=image@GRAD {epsilon=0.001} backward\n");
  CHECK(messages == Lines{"sync_batch_norm: 1 layers, 2 all-reduces of their sums a step"});
}

TEST_CASE("a device without sync_batch_norm keeps batch_norm, and that is reported") {
  const OpNames some = {"sync_batch_norm_sums"};
  Program program = parse_program(kBefore + kOps, all_ops());
  const job::StrategySpec strategy;
  Lines messages;
  PassContext context = context_of(strategy, messages);
  context.device_ops = &some;
  sync_batch_norm(program, context);
  CHECK(print_program(program, all_ops()) == kBefore + kOps);
  CHECK(messages ==
        Lines{"sync_batch_norm: this device has no sync_batch_norm, each rank keeps to its own batch"});
}

std::int64_t communications_of(bool sync, int ranks) {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet50;
  job.data.batch_size = 2;
  job.strategy.sync_batch_norm = sync;
  job.strategy.fuse_all_reduce_ops = false;
  const Program program = build_training_program(job, {.input_shape = {3, 64, 64}, .classes = 102}, all_ops(),
                                                 {.world_size = ranks});
  return std::count_if(program.ops.begin(), program.ops.end(),
                       [](const Op& op) { return op.role == Role::communication; });
}

TEST_CASE("ResNet-50 has 53 batch norms: 106 all-reduces more a step, none alone") {
  CHECK(communications_of(false, 2) == 161);
  CHECK(communications_of(true, 2) == 161 + 106);
  CHECK(communications_of(true, 1) == 0);
}

}  // namespace
}  // namespace fleetrun::runtime::sync_batch_norm_test
