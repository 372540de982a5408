// A depthwise convolution of a rectified image: conv2d of relu(x), each channel by itself (groups = C = O). The pass
// fuse_relu_depthwise_conv makes it; relu(x) is nowhere in memory.
//   arguments and attributes as of conv2d;  w [C, 1, kh, kw]
//   relu_depthwise_grad_input(dy, w, x; input_shape): dx = conv2d_grad_input where x > 0, else 0
//   relu_depthwise_grad_weights(x, dy; weight_shape): conv2d_grad_weights of relu(x)
// Throws Error(config) when sizes do not fit each other, or the groups are not single channels.
#include <fmt/format.h>

#include "runtime/ops/rules/conv2d.h"

namespace fleetrun::runtime::ops {
namespace {

void expect_depthwise(const OpView& op, const Shape& x, const Shape& w) {
  const std::int64_t groups = op.integer("groups");
  if (x.at(1) != groups || w.at(0) != groups)
    op.fail(fmt::format("there are {} groups for x {} and w {}, wanted one for each channel", groups,
                        describe(x), describe(w)));
}

void infer_relu_depthwise(Inference& op) {
  infer_conv2d(op);
  expect_depthwise(op, op.input("x").shape, op.input("w").shape);
}

void infer_grad_input(Inference& op) {
  infer_conv2d_grad_input(op);
  const Shape &x = op.input("x").shape, &dx = op.integers("input_shape");
  if (x != dx) op.fail(fmt::format("x is {}, wanted {} like dx", describe(x), describe(dx)));
  expect_depthwise(op, x, op.input("w").shape);
}

void infer_grad_weights(Inference& op) {
  infer_conv2d_grad_weights(op);
  expect_depthwise(op, op.input("x").shape, op.integers("weight_shape"));
}

void grad_relu_depthwise(GradientRule& rule) {
  const OpView& forward = rule.forward();
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone) return;
  if (rule.wants("x")) {
    Attributes attributes = forward.op().attributes;
    attributes["input_shape"] = forward.input("x").shape;
    const Arguments inputs = {{"dy", dy}, {"w", forward.input_id("w")}, {"x", forward.input_id("x")}};
    rule.set_gradient("x", rule.emit("relu_depthwise_grad_input", inputs, attributes).front());
  }
  emit_conv2d_grad_weights(rule, "relu_depthwise_grad_weights");
}

Sample depthwise_sample(const Shape& x, std::int64_t kernel_rows, std::int64_t kernel_columns,
                        const Attributes& settings, bool bias = false) {
  Sample sample = {
      .inputs = {{"x", {x, SampleInput::Fill::spread}}, {"w", {{x[1], 1, kernel_rows, kernel_columns}}}},
      .attributes = {
          {"strides", Shape{1, 1}}, {"paddings", Shape{1, 1}}, {"dilations", Shape{1, 1}}, {"groups", x[1]}}};
  for (const auto& [name, value] : settings) sample.attributes[name] = value;
  if (bias) sample.inputs["b"] = {{x[1]}};
  return sample;
}

std::vector<Sample> relu_depthwise_samples() {
  return {depthwise_sample({2, 16, 5, 6}, 3, 3, {}),
          depthwise_sample({1, 20, 7, 7}, 3, 3, {{"strides", Shape{2, 2}}}, true),
          depthwise_sample({2, 3, 9, 8}, 5, 3, {{"paddings", Shape{0, 2, 1, 0}}, {"strides", Shape{1, 3}}}),
          depthwise_sample({1, 8, 9, 9}, 3, 2, {{"dilations", Shape{2, 3}}}, true),
          depthwise_sample({2, 5, 4, 4}, 1, 1, {{"paddings", Shape{0, 0}}, {"strides", Shape{2, 2}}})};
}

}  // namespace

OpDef relu_depthwise() {
  return {.inputs = {"x", "w", "b?"},
          .outputs = {"y"},
          .infer = infer_relu_depthwise,
          .gradient = grad_relu_depthwise,
          .samples = relu_depthwise_samples};
}

OpDef relu_depthwise_grad_input() {
  return {.inputs = {"dy", "w", "x"}, .outputs = {"dx"}, .infer = infer_grad_input};
}

OpDef relu_depthwise_grad_weights() {
  return {.inputs = {"x", "dy"}, .outputs = {"dw", "db"}, .infer = infer_grad_weights};
}

}  // namespace fleetrun::runtime::ops
