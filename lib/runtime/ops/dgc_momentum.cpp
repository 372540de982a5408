// Momentum in the steps that sum whole gradients, then plain SGD: the momentum is in what the ranks send (dgc_select). In place.
//   up to step rampup_begin_step: as the op momentum;  then param -= learning_rate * grad
//   arguments and attributes as the op momentum, and rampup_begin_step
// Throws Error(config) as the op momentum.
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

OpDef momentum();

namespace {

void infer_dgc_momentum(Inference& op) {
  momentum().infer(op);
  op.integer("rampup_begin_step");
}

}  // namespace

OpDef dgc_momentum() {
  OpDef def = momentum();
  def.infer = infer_dgc_momentum;
  return def;
}

}  // namespace fleetrun::runtime::ops
