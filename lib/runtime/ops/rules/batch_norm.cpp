#include "runtime/ops/rules/batch_norm.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {
namespace {

void expect_images(const OpView& op) {
  const Shape& x = op.input("x").shape;
  if (x.size() != 4) op.fail(fmt::format("x is {}, wanted [N, C, H, W]", describe(x)));
}

void check_epsilon(const OpView& op) {
  const double epsilon = op.number("epsilon");
  if (!(epsilon > 0)) op.fail(fmt::format("epsilon is {}, must be above 0", epsilon));
}

// kNone when none flows.
ValueId gradient_of_y(const GradientRule& rule) {
  const OpView& forward = rule.forward();
  for (const char* name : {"mean", "variance", "batch_mean", "batch_variance"})
    if (rule.output_gradient(name) != kNone)
      forward.fail(fmt::format("a gradient flows into {}, but only y has one here", name));
  const ValueId dy = rule.output_gradient("y");
  if (dy != kNone && !forward.flag("training")) forward.fail("a gradient is asked for in evaluation");
  return dy;
}

}  // namespace

void expect_one_per_channel(const OpView& op, std::string_view name) {
  const Value& value = op.input(name);
  const Shape wanted = {op.input("x").shape[1]};
  if (value.shape != wanted || value.dtype != DType::f32)
    op.fail(fmt::format("{} is {} {}, wanted f32 {} for x {}", name, describe(value.dtype),
                        describe(value.shape), describe(wanted), describe(op.input("x").shape)));
}

void infer_batch_norm(Inference& op) {
  expect_images(op);
  for (const char* name : {"scale", "bias", "mean", "variance"}) expect_one_per_channel(op, name);
  check_epsilon(op);
  const double momentum = op.number("momentum");
  if (!(momentum >= 0 && momentum <= 1))
    op.fail(fmt::format("momentum is {}, must be from 0 to 1", momentum));
  const bool training = op.flag("training");
  for (const char* name : {"mean", "variance", "batch_mean", "batch_variance"})
    if (op.has_output(name) != training)
      op.fail(fmt::format("{} is {} output of {}", name, training ? "a wanted" : "not an",
                          training ? "training, but is left out" : "evaluation"));
  const Value& x = op.input("x");
  const Shape channels = {x.shape[1]};
  op.set_output("y", Shape(x.shape), x.dtype);
  if (!training) return;
  op.set_output("batch_mean", channels);
  op.set_output("batch_variance", channels);
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

void expect_training(const OpView& op) {
  if (!op.flag("training")) op.fail("is for training only; evaluation has batch_norm");
}

void emit_batch_norm_grad(GradientRule& rule, const std::string& type, const std::vector<std::string>& inputs,
                          const Arguments& more) {
  const OpView& forward = rule.forward();
  const ValueId dy = gradient_of_y(rule);
  if (dy == kNone) return;
  Arguments arguments = {{"x", forward.input_id("x")},
                         {"dy", dy},
                         {"scale", forward.input_id("scale")},
                         {"batch_mean", forward.output_id("batch_mean")},
                         {"batch_variance", forward.output_id("batch_variance")}};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto ids = rule.emit(type, arguments, {{"epsilon", forward.number("epsilon")}});
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (rule.wants(inputs[i])) rule.set_gradient(inputs[i], ids.at(i));
}

Sample batch_norm_sample(const Shape& x, SampleInput::Fill fill) {
  const Shape channels = {x[1]};
  return {.inputs = {{"x", {x, fill}},
                     {"scale", {channels, SampleInput::Fill::positive}},
                     {"bias", {channels}},
                     {"mean", {channels}},
                     {"variance", {channels, SampleInput::Fill::positive}}},
          .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", true}}};
}

}  // namespace fleetrun::runtime::ops
