// Gradients whose values lie between two bounds, in place. NaN stays NaN.
//   grad = min(max(grad, -limit), limit)          grad: a list of any shapes, f32;  attribute: limit > 0
// Throws Error(config) for another limit.
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_clip_by_value(Inference& op) { expect_above_0(op, "limit"); }

}  // namespace

OpDef clip_by_value() {
  return {.inputs = {"grad*"}, .outputs = {"grad*"}, .infer = infer_clip_by_value, .in_place = {"grad"}};
}

}  // namespace fleetrun::runtime::ops
