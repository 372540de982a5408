// Convolution over images (a cross-correlation, as every framework has it).
//   y[n,o,i,j] = b[o] + sum over c,p,q of x[n, c, i*stride + p*dilation - padding, j*...] * w[o,c,p,q]
//   x [N, C, H, W] f32;  w [O, C/groups, kh, kw];  b [O], optional;  y [N, O, H', W']
//   H' = (H + paddings - dilation*(kh-1) - 1) / stride + 1, rounded down; W' likewise
//   With groups, output channels of group g see the input channels of group g only.
//   attributes: strides [2], paddings [2] or [4] (top, bottom, left, right), dilations [2], groups
//   conv2d_grad_input(dy, w; input_shape) gives dx, conv2d_grad_weights(x, dy; weight_shape) dw and db.
// Throws Error(config) when sizes do not fit each other.
#include <fmt/format.h>

#include "runtime/ops/rules/conv2d.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::ops {
namespace {

// Shape of y for x and w. Throws Error(config) when w does not fit x.
Shape convolved(const OpView& op, const Shape& x, const Shape& w) {
  const std::int64_t groups = op.integer("groups");
  if (x.size() != 4) op.fail(fmt::format("x is {}, wanted [N, C, H, W]", describe(x)));
  if (groups < 1 || x[1] % groups != 0)
    op.fail(fmt::format("x is {}, {} groups do not divide its channels", describe(x), groups));
  if (w.size() != 4 || w[1] != x[1] / groups || w[0] % groups != 0)
    op.fail(fmt::format("w is {}, wanted [O, {}, kh, kw] for x {} in {} groups", describe(w), x[1] / groups,
                        describe(x), groups));
  return moved_over(op, read_window(op, w[2], w[3]), x, w[0]);
}

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

void infer_conv2d(Inference& op) {
  const Shape& w = op.input("w").shape;
  const Shape y = convolved(op, op.input("x").shape, w);
  if (op.has_input("b") && op.input("b").shape != Shape{w[0]})
    op.fail(fmt::format("b is {}, wanted [{}]", describe(op.input("b").shape), w[0]));
  op.set_output("y", y, op.input("x").dtype);
}

void infer_conv2d_grad_input(Inference& op) {
  const Shape& dx = op.integers("input_shape");
  const Shape y = convolved(op, dx, op.input("w").shape);
  if (op.input("dy").shape != y)
    op.fail(fmt::format("dy is {}, wanted {}", describe(op.input("dy").shape), describe(y)));
  op.set_output("dx", dx, op.input("dy").dtype);
}

void infer_conv2d_grad_weights(Inference& op) {
  const Shape& dw = op.integers("weight_shape");
  const Shape y = convolved(op, op.input("x").shape, dw);
  if (op.input("dy").shape != y)
    op.fail(fmt::format("dy is {}, wanted {}", describe(op.input("dy").shape), describe(y)));
  op.set_output("dw", dw, op.input("x").dtype);
  op.set_output("db", {dw[0]}, op.input("x").dtype);
}

void emit_conv2d_grad_weights(GradientRule& rule, const std::string& type) {
  const OpView& forward = rule.forward();
  const bool bias = forward.has_input("b") && rule.wants("b");
  if (!rule.wants("w") && !bias) return;
  Attributes attributes = forward.op().attributes;
  attributes["weight_shape"] = forward.input("w").shape;
  const auto ids =
      rule.emit(type, {{"x", forward.input_id("x")}, {"dy", rule.output_gradient("y")}}, attributes,
                bias ? std::vector<std::string>{"dw", "db"} : std::vector<std::string>{"dw"});
  if (rule.wants("w")) rule.set_gradient("w", ids[0]);
  if (bias) rule.set_gradient("b", ids[1]);
}

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
