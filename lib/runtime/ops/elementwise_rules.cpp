#include "runtime/ops/elementwise_rules.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {
namespace {

std::vector<Sample> spread_samples() {
  return {{.inputs = {{"x", {{3, 5}, SampleInput::Fill::spread}}}},
          {.inputs = {{"x", {{2, 3, 5, 7}, SampleInput::Fill::spread}}}}};
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

void set_gradient_by(GradientRule& rule, const std::string& op, Arguments reads) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  reads.emplace_back("dy", dy);
  rule.set_gradient("x", rule.emit(op, reads, rule.forward().op().attributes).front());
}

OpDef activation(const std::string& name, void (*gradient)(GradientRule&)) {
  return {.name = name,
          .inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_y_like_x,
          .gradient = gradient,
          .samples = spread_samples,
          .may_share = {{"y", "x"}}};
}

OpDef activation_grad(const std::string& name, const std::string& reads) {
  return {.name = name,
          .inputs = {reads, "dy"},
          .outputs = {"dx"},
          .infer = infer_dx_like_first,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
