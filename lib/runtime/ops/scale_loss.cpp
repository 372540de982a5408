// The loss times the loss scale, so that small gradients do not vanish in a narrow type.
//   y = x * scale           x, scale, y [1] f32
//   dx = dy * scale         dscale = dy * x
// Throws Error(config) when x or scale is not f32 [1].
#include "runtime/ops/rules/loss_scaling.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_scale_loss(Inference& op) {
  for (const char* name : {"x", "scale"}) expect_one_number(op, name);
  op.set_output("y", {1});
}

void grad_scale_loss(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone) return;
  const auto times = [&](const char* other) {
    return rule.emit("scale_loss", {{"x", dy}, {"scale", rule.forward().input_id(other)}}, {}).front();
  };
  if (rule.wants("x")) rule.set_gradient("x", times("scale"));
  if (rule.wants("scale")) rule.set_gradient("scale", times("x"));
}

std::vector<Sample> scale_loss_samples() { return {{.inputs = {{"x", {{1}}}, {"scale", {{1}}}}}}; }

}  // namespace

OpDef scale_loss() {
  return {.inputs = {"x", "scale"},
          .outputs = {"y"},
          .infer = infer_scale_loss,
          .gradient = grad_scale_loss,
          .samples = scale_loss_samples};
}

}  // namespace fleetrun::runtime::ops
