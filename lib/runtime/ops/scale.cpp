// A tensor times a constant, plus a constant.
//   y = scale * x + bias          x f32, any shape;  y like x
//   dx = scale * dy
//   attributes: scale, bias
#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_scale(Inference& op) {
  op.number("scale");
  op.number("bias");
  infer_y_like_x(op);
}

void grad_scale(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  const Attributes attributes = {{"scale", rule.forward().number("scale")}, {"bias", 0.0}};
  rule.set_gradient("x", rule.emit("scale", {{"x", dy}}, attributes).front());
}

std::vector<Sample> scale_samples() {
  return {{.inputs = {{"x", {{5, 7}}}}, .attributes = {{"scale", -1.5}, {"bias", 0.25}}},
          {.inputs = {{"x", {{2, 3, 3, 3}}}}, .attributes = {{"scale", 0.5}, {"bias", 0.0}}}};
}

}  // namespace

OpDef scale() {
  return {.inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_scale,
          .gradient = grad_scale,
          .samples = scale_samples,
          .may_share = {{"y", "x"}}};
}

}  // namespace fleetrun::runtime::ops
