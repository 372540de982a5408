// Batch normalisation of each channel (Ioffe and Szegedy 2015, arXiv:1502.03167), as PaddlePaddle has it.
//   y = (x - m[c]) / sqrt(v[c] + epsilon) * scale[c] + bias[c]
//   training: m, v are mean and variance of channel c in this batch, v = sum (x - m)^2 / n with n = N*H*W.
//     They come out as batch_mean and batch_variance, and the running statistics move towards them in place:
//     mean = mean * momentum + m * (1 - momentum), variance likewise with the same v
//     (paddle/fluid/operators/batch_norm_op.cc; PyTorch's momentum is 1 - ours, and its running variance
//     takes sum (x - m)^2 / (n - 1)).
//   evaluation: m, v are the running statistics, which stay as they are; y is the only output
//   x [N, C, H, W] f32;  scale, bias, mean, variance, batch_mean, batch_variance [C] f32;  y like x
//   attributes: epsilon (usually 1e-5), momentum (usually 0.9), training
//   batch_norm_grad(x, dy, scale, batch_mean, batch_variance), with z = (x - m) / sqrt(v + epsilon):
//     dbias = sum dy;  dscale = sum dy * z
//     dx = scale / sqrt(v + epsilon) * (dy - dbias / n - z * dscale / n)
// Throws Error(config) when sizes do not fit, when training sees one value per channel only (its variance
// is 0; PaddlePaddle copies x then, PyTorch refuses too), or when a gradient is asked for in evaluation.
#include <fmt/format.h>

#include "runtime/ops/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void expect_images(const OpView& op) {
  const Shape& x = op.input("x").shape;
  if (x.size() != 4) op.fail(fmt::format("x is {}, wanted [N, C, H, W]", describe(x)));
}

void expect_one_per_channel(const OpView& op, std::string_view name) {
  const Value& value = op.input(name);
  const Shape wanted = {op.input("x").shape[1]};
  if (value.shape != wanted || value.dtype != DType::f32)
    op.fail(fmt::format("{} is {} {}, wanted f32 {} for x {}", name, describe(value.dtype),
                        describe(value.shape), describe(wanted), describe(op.input("x").shape)));
}

void check_epsilon(const OpView& op) {
  const double epsilon = op.number("epsilon");
  if (!(epsilon > 0)) op.fail(fmt::format("epsilon is {}, must be above 0", epsilon));
}

void expect_some_values(const OpView& op) {
  const Shape& x = op.input("x").shape;
  if (x[0] * x[2] * x[3] < 2)
    op.fail(fmt::format("x is {}: training wants more than one value per channel", describe(x)));
}

void infer_batch_norm(Inference& op) {
  expect_images(op);
  for (const char* name : {"scale", "bias", "mean", "variance"}) expect_one_per_channel(op, name);
  check_epsilon(op);
  const double momentum = op.number("momentum");
  if (!(momentum >= 0 && momentum <= 1))
    op.fail(fmt::format("momentum is {}, must be from 0 to 1", momentum));
  const bool training = op.flag("training");
  if (training) expect_some_values(op);
  for (const char* name : {"mean", "variance", "batch_mean", "batch_variance"})
    if (op.has_output(name) != training)
      op.fail(fmt::format("{} is {} output of {}", name, training ? "a wanted" : "no",
                          training ? "training, but is left out" : "evaluation"));
  const Value& x = op.input("x");
  const Shape channels = {x.shape[1]};
  op.set_output("y", Shape(x.shape), x.dtype);
  if (!training) return;
  op.set_output("batch_mean", channels);
  op.set_output("batch_variance", channels);
}

void grad_batch_norm(GradientRule& rule) {
  const OpView& forward = rule.forward();
  for (const char* name : {"mean", "variance", "batch_mean", "batch_variance"})
    if (rule.output_gradient(name) != kNone)
      forward.fail(fmt::format("a gradient flows into {}, but only y has one here", name));
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone) return;
  if (!forward.flag("training")) forward.fail("a gradient is asked for in evaluation");
  const Arguments inputs = {{"x", forward.input_id("x")},
                            {"dy", dy},
                            {"scale", forward.input_id("scale")},
                            {"batch_mean", forward.output_id("batch_mean")},
                            {"batch_variance", forward.output_id("batch_variance")}};
  const auto ids = rule.emit("batch_norm_grad", inputs, {{"epsilon", forward.number("epsilon")}});
  if (rule.wants("x")) rule.set_gradient("x", ids[0]);
  if (rule.wants("scale")) rule.set_gradient("scale", ids[1]);
  if (rule.wants("bias")) rule.set_gradient("bias", ids[2]);
}

Sample batch_norm_sample(const Shape& x) {
  const Shape channels = {x[1]};
  return {.inputs = {{"x", {x}},
                     {"scale", {channels, SampleInput::Fill::positive}},
                     {"bias", {channels}},
                     {"mean", {channels}},
                     {"variance", {channels, SampleInput::Fill::positive}}},
          .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", true}}};
}

std::vector<Sample> batch_norm_samples() {
  return {batch_norm_sample({4, 3, 5, 6}), batch_norm_sample({2, 17, 4, 3}), batch_norm_sample({2, 16, 4, 4}),
          batch_norm_sample({9, 5, 1, 1})};
}

void infer_batch_norm_grad(Inference& op) {
  expect_images(op);
  for (const char* name : {"scale", "batch_mean", "batch_variance"}) expect_one_per_channel(op, name);
  check_epsilon(op);
  const Value& x = op.input("x");
  if (op.input("dy").shape != x.shape)
    op.fail(fmt::format("dy is {}, wanted {} like x", describe(op.input("dy").shape), describe(x.shape)));
  const Shape channels = {x.shape[1]};
  op.set_output("dx", Shape(x.shape), x.dtype);
  op.set_output("dscale", channels);
  op.set_output("dbias", channels);
}

}  // namespace

OpDef batch_norm() {
  return {.name = "batch_norm",
          .inputs = {"x", "scale", "bias", "mean", "variance"},
          .outputs = {"y", "mean", "variance", "batch_mean", "batch_variance"},
          .infer = infer_batch_norm,
          .gradient = grad_batch_norm,
          .samples = batch_norm_samples,
          .in_place = {"mean", "variance"},
          .may_share = {{"y", "x"}}};
}

OpDef batch_norm_grad() {
  return {.name = "batch_norm_grad",
          .inputs = {"x", "dy", "scale", "batch_mean", "batch_variance"},
          .outputs = {"dx", "dscale", "dbias"},
          .infer = infer_batch_norm_grad,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
