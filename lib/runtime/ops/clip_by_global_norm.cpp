// Gradients whose common norm has an upper bound (Pascanu et al. 2013, arXiv:1211.5063), in place.
//   norm = sqrt(sum of norms^2);  grad *= limit / norm, where norm > limit
//   grad: a list of any shapes, f32;  norms [n]: |gradient| of all parameters (gradient_norms.cpp);  attribute: limit > 0
// Throws Error(config) for another limit.
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_clip_by_global_norm(Inference& op) { expect_above_0(op, "limit"); }

}  // namespace

OpDef clip_by_global_norm() {
  return {.inputs = {"grad*", "norms"},
          .outputs = {"grad*"},
          .infer = infer_clip_by_global_norm,
          .in_place = {"grad"}};
}

}  // namespace fleetrun::runtime::ops
