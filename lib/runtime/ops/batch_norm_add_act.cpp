// Batch normalisation, the addition of another tensor and the rectifier after it, in training: the end of a residual block.
//   y = max(batch_norm(x) + z, 0), z like x; with all that batch_norm says of arguments, attributes and running statistics
//   batch_norm_add_act_grad(x, y, dy, dy_too, scale, batch_mean, batch_variance):
//     dz = dy + dy_too where y > 0, else 0, the sum rounded to the type of dy; dy_too may be absent;  dx, dscale and dbias are those of batch_norm_grad with dz in place of dy
// Throws Error(config) as batch_norm does, when z is not like x, and in evaluation.
#include <fmt/format.h>

#include "runtime/ops/rules/batch_norm.h"

namespace fleetrun::runtime::ops {
namespace {

void expect_like_x(const OpView& op, std::string_view name) {
  const Shape& x = op.input("x").shape;
  const Shape& other = op.input(name).shape;
  if (other != x) op.fail(fmt::format("{} is {}, wanted {} like x", name, describe(other), describe(x)));
}

void infer_batch_norm_add_act(Inference& op) {
  expect_training(op);
  infer_batch_norm(op);
  expect_like_x(op, "z");
}

void grad_batch_norm_add_act(GradientRule& rule) {
  emit_batch_norm_grad(rule, "batch_norm_add_act_grad", {"x", "z", "scale", "bias"},
                       {{"y", rule.forward().output_id("y")}});
}

std::vector<Sample> batch_norm_add_act_samples() {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{4, 4, 2, 1}, Shape{3, 17, 3, 1}}) {
    samples.push_back(batch_norm_sample(shape, SampleInput::Fill::spread));
    samples.back().inputs["z"] = {shape};
  }
  return samples;
}

void infer_batch_norm_add_act_grad(Inference& op) {
  infer_batch_norm_grad(op);
  expect_like_x(op, "y");
  if (op.has_input("dy_too")) expect_like_x(op, "dy_too");
  op.set_output("dz", Shape(op.input("x").shape), op.input("x").dtype);
}

}  // namespace

OpDef batch_norm_add_act() {
  return {.inputs = {"x", "z", "scale", "bias", "mean", "variance"},
          .outputs = {"y", "mean", "variance", "batch_mean", "batch_variance"},
          .infer = infer_batch_norm_add_act,
          .gradient = grad_batch_norm_add_act,
          .samples = batch_norm_add_act_samples,
          .in_place = {"mean", "variance"},
          .may_share = {{"y", "x"}, {"y", "z"}}};
}

OpDef batch_norm_add_act_grad() {
  return {.inputs = {"x", "y", "dy", "dy_too?", "scale", "batch_mean", "batch_variance"},
          .outputs = {"dx", "dz", "dscale", "dbias"},
          .infer = infer_batch_norm_add_act_grad,
          .may_share = {{"dz", "dy"}, {"dx", "x"}}};
}

}  // namespace fleetrun::runtime::ops
