// Gradients whose norms have an upper bound, each by itself, in place.
//   grad *= limit / |grad|, where |grad| > limit          grad: a list of any shapes, f32;  attribute: limit > 0
// Throws Error(config) for another limit.
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_clip_by_norm(Inference& op) { expect_above_0(op, "limit"); }

}  // namespace

OpDef clip_by_norm() {
  return {.inputs = {"grad*"}, .outputs = {"grad*"}, .infer = infer_clip_by_norm, .in_place = {"grad"}};
}

}  // namespace fleetrun::runtime::ops
