// Rectifier (Nair and Hinton 2010).
//   y = max(x, 0)          x f32, any shape;  y like x
//   dx = dy where y > 0, else 0
#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::ops {

OpDef relu() { return activation(GradientReads::y); }
OpDef relu_grad() { return activation_grad(GradientReads::y); }

}  // namespace fleetrun::runtime::ops
