// Rectifier (Nair and Hinton 2010).
//   y = max(x, 0)          x f32, any shape;  y like x
//   dx = dy where y > 0, else 0
#include "runtime/ops/elementwise_rules.h"

namespace fleetrun::runtime::ops {
namespace {

void grad_relu(GradientRule& rule) {
  set_gradient_by(rule, "relu_grad", {{"y", rule.forward().output_id("y")}});
}

}  // namespace

OpDef relu() { return activation("relu", grad_relu); }
OpDef relu_grad() { return activation_grad("relu_grad", "y"); }

}  // namespace fleetrun::runtime::ops
