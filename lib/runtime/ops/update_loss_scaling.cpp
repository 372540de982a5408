// The loss scale after a step, as PaddlePaddle counts (paddle/fluid/operators/amp/update_loss_scaling_op.h), in place.
//   found above 0: good = 0; bad += 1; at bad == decr_every_n_nan_or_inf: scale = max(scale * decr_ratio, 1), bad = 0
//   else:          bad = 0; good += 1; at good == incr_every_n_steps: scale *= incr_ratio unless that is infinite, good = 0
//   found, scale, good, bad [1] f32: whole numbers are exact in it up to 2^24
//   attributes: incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio
// Throws Error(config) when an argument is not f32 [1].
#include "runtime/ops/rules/loss_scaling.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_update(Inference& op) {
  for (const char* name : {"found", "scale", "good", "bad"}) expect_one_number(op, name);
  for (const char* name : {"incr_every_n_steps", "decr_every_n_nan_or_inf"}) op.integer(name);
  for (const char* name : {"incr_ratio", "decr_ratio"}) op.number(name);
}

}  // namespace

OpDef update_loss_scaling() {
  return {.inputs = {"found", "scale", "good", "bad"},
          .outputs = {"scale", "good", "bad"},
          .infer = infer_update,
          .in_place = {"scale", "good", "bad"}};
}

}  // namespace fleetrun::runtime::ops
