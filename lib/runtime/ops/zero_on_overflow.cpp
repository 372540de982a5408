// Gradients that became infinite are all set to 0, in place: the update that follows then only moves by its momentum and
// its weight decay.
//   grad = found above 0 ? 0 : grad          grad: a list of any shapes, f32;  found [1] f32
// Throws Error(config) when found is not f32 [1].
#include "runtime/ops/rules/loss_scaling.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_zero(Inference& op) { expect_one_number(op, "found"); }

}  // namespace

OpDef zero_on_overflow() {
  return {.inputs = {"grad*", "found"}, .outputs = {"grad*"}, .infer = infer_zero, .in_place = {"grad"}};
}

}  // namespace fleetrun::runtime::ops
