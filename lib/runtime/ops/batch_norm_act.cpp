// Batch normalisation with the rectifier after it, in training.
//   y = max(batch_norm(x), 0), with all that batch_norm says of arguments, attributes and running statistics
//   batch_norm_act_grad(x, dy, scale, bias, batch_mean, batch_variance):
//     batch_norm_grad with dy where batch_norm(x) > 0, else 0, in its place. It finds that out from x anew, so that y is
//     not read.
// Throws Error(config) as batch_norm does, and in evaluation.
#include "runtime/ops/rules/batch_norm.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_batch_norm_act(Inference& op) {
  expect_training(op);
  infer_batch_norm(op);
}

void grad_batch_norm_act(GradientRule& rule) {
  emit_batch_norm_grad(rule, "batch_norm_act_grad", {"x", "scale", "bias"},
                       {{"bias", rule.forward().input_id("bias")}});
}

std::vector<Sample> batch_norm_act_samples() {
  return {batch_norm_sample({4, 4, 2, 1}, SampleInput::Fill::spread),
          batch_norm_sample({3, 17, 3, 1}, SampleInput::Fill::spread)};
}

void infer_batch_norm_act_grad(Inference& op) {
  infer_batch_norm_grad(op);
  expect_one_per_channel(op, "bias");
}

}  // namespace

OpDef batch_norm_act() {
  return {.inputs = {"x", "scale", "bias", "mean", "variance"},
          .outputs = {"y", "mean", "variance", "batch_mean", "batch_variance"},
          .infer = infer_batch_norm_act,
          .gradient = grad_batch_norm_act,
          .samples = batch_norm_act_samples,
          .in_place = {"mean", "variance"},
          .may_share = {{"y", "x"}}};
}

OpDef batch_norm_act_grad() {
  return {.inputs = {"x", "dy", "scale", "bias", "batch_mean", "batch_variance"},
          .outputs = {"dx", "dscale", "dbias"},
          .infer = infer_batch_norm_act_grad,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
