// Convolution over images (a cross-correlation, as every framework has it).
//   y[n,o,i,j] = b[o] + sum over c,p,q of x[n, c, i*stride + p*dilation - padding, j*...] * w[o,c,p,q]
//   x [N, C, H, W] f32;  w [O, C/groups, kh, kw];  b [O], optional;  y [N, O, H', W']
//   H' = (H + paddings - dilation*(kh-1) - 1) / stride + 1, rounded down; W' likewise
//   With groups, output channels of group g see the input channels of group g only.
//   attributes: strides [2], paddings [2] or [4] (top, bottom, left, right), dilations [2], groups
//   conv2d_grad_input(dy, w; input_shape) gives dx, conv2d_grad_weights(x, dy; weight_shape) dw and db.
// Throws Error(config) when sizes do not fit each other.
#include "runtime/ops/rules/conv2d.h"

namespace fleetrun::runtime::ops {
namespace {

void grad_conv2d(GradientRule& rule) {
  const OpView& forward = rule.forward();
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone) return;
  if (rule.wants("x")) {
    Attributes attributes = forward.op().attributes;
    attributes["input_shape"] = forward.input("x").shape;
    const auto ids = rule.emit("conv2d_grad_input", {{"dy", dy}, {"w", forward.input_id("w")}}, attributes);
    rule.set_gradient("x", ids.front());
  }
  emit_conv2d_grad_weights(rule, "conv2d_grad_weights");
}

Sample conv_sample(Shape x, Shape w, bool bias, const Attributes& attributes) {
  Attributes all = {{"strides", Shape{1, 1}},
                    {"paddings", Shape{0, 0}},
                    {"dilations", Shape{1, 1}},
                    {"groups", std::int64_t{1}}};
  for (const auto& [name, value] : attributes) all[name] = value;
  Sample sample = {.inputs = {{"x", {x}}, {"w", {w}}}, .attributes = all};
  if (bias) sample.inputs["b"] = {{w[0]}};
  return sample;
}

std::vector<Sample> conv2d_samples() {
  return {
      conv_sample({2, 3, 7, 6}, {5, 3, 3, 2}, true, {}),
      conv_sample({1, 5, 9, 8}, {7, 5, 3, 3}, false, {{"strides", Shape{2, 3}}, {"paddings", Shape{1, 2}}}),
      conv_sample({2, 16, 5, 5}, {32, 16, 3, 3}, true, {{"paddings", Shape{1, 1}}}),
      conv_sample({2, 6, 8, 7}, {4, 3, 3, 3}, true, {{"groups", std::int64_t{2}}, {"paddings", Shape{1, 1}}}),
      conv_sample({1, 4, 6, 6}, {4, 1, 3, 3}, false, {{"groups", std::int64_t{4}}, {"strides", Shape{2, 2}}}),
      conv_sample({1, 1, 9, 9}, {3, 1, 3, 3}, true, {{"dilations", Shape{2, 3}}, {"paddings", Shape{2, 3}}}),
      conv_sample({2, 2, 5, 6}, {3, 2, 3, 3}, true, {{"paddings", Shape{0, 1, 2, 0}}}),
      conv_sample({3, 17, 4, 4}, {9, 17, 1, 1}, false, {{"strides", Shape{2, 2}}})};
}

}  // namespace

OpDef conv2d() {
  return {.inputs = {"x", "w", "b?"},
          .outputs = {"y"},
          .infer = infer_conv2d,
          .gradient = grad_conv2d,
          .samples = conv2d_samples};
}

OpDef conv2d_grad_input() {
  return {.inputs = {"dy", "w"}, .outputs = {"dx"}, .infer = infer_conv2d_grad_input};
}

OpDef conv2d_grad_weights() {
  return {.inputs = {"x", "dy"}, .outputs = {"dw", "db"}, .infer = infer_conv2d_grad_weights};
}

}  // namespace fleetrun::runtime::ops
