#include "runtime/ops/rules/elementwise.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {
namespace {

std::vector<Sample> spread_samples() {
  return {{.inputs = {{"x", {{3, 5}, SampleInput::Fill::spread}}}},
          {.inputs = {{"x", {{2, 3, 5, 7}, SampleInput::Fill::spread}}}}};
}

void set_gradient_by_x(GradientRule& rule) {
  set_gradient_by_one_op(rule, {{"x", rule.forward().input_id("x")}});
}

void set_gradient_by_y(GradientRule& rule) {
  set_gradient_by_one_op(rule, {{"y", rule.forward().output_id("y")}});
}

}  // namespace

void expect_alike(const OpView& op, std::string_view a, std::string_view b) {
  const Shape& left = op.input(a).shape;
  const Shape& right = op.input(b).shape;
  if (left != right)
    op.fail(fmt::format("{} is {}, {} is {}; they must be alike", a, describe(left), b, describe(right)));
}

void infer_y_like_x(Inference& op) { op.set_output("y", op.input("x").shape, op.input("x").dtype); }

void infer_dx_like_first(Inference& op) {
  const std::string first = op.def().input_name(0);
  expect_alike(op, first, "dy");
  op.set_output("dx", op.input(first).shape, op.input(first).dtype);
}

void set_gradient_by_one_op(GradientRule& rule, Arguments reads) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  reads.emplace_back("dy", dy);
  const OpView& forward = rule.forward();
  rule.set_gradient("x", rule.emit(forward.def().name + "_grad", reads, forward.op().attributes).front());
}

float relu6_threshold(const OpView& op) {
  const DType of_y = op.program().value(op.op().inputs.front()).dtype;
  return rounded_to(of_y, static_cast<float>(op.number("threshold")));
}

OpDef activation(GradientReads reads) {
  return {.inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_y_like_x,
          .gradient = reads == GradientReads::x ? set_gradient_by_x : set_gradient_by_y,
          .samples = spread_samples,
          .may_share = {{"y", "x"}}};
}

OpDef activation_grad(GradientReads reads) {
  return {.inputs = {reads == GradientReads::x ? "x" : "y", "dy"},
          .outputs = {"dx"},
          .infer = infer_dx_like_first,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
