// Moving averages of parameters with the bias towards their start taken out, as PaddlePaddle's ExponentialMovingAverage, in
// place.
//   average += (1 - decay) / (1 - decay_pow) * (param - average);  decay_pow *= decay
//   param, average f32, lists of one length, alike;  decay_pow [1]: decay^t in update t = 1, 2, ...; it starts as decay
//   attribute: decay
// After t updates the average is sum of decay^(t-i) * param_i, divided by the sum of the decay^(t-i).
// Throws Error(config) when the shapes differ or decay is not in [0, 1).
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/loss_scaling.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_average(Inference& op) {
  expect_like_param(op, "average");
  expect_one_number(op, "decay_pow");
  if (const double decay = op.number("decay"); !(decay >= 0 && decay < 1))
    op.fail(fmt::format("decay is {}, must be at least 0 and below 1", decay));
}

}  // namespace

OpDef average_weights() {
  return {.inputs = {"param*", "average*", "decay_pow"},
          .outputs = {"average*", "decay_pow"},
          .infer = infer_average,
          .in_place = {"average", "decay_pow"}};
}

}  // namespace fleetrun::runtime::ops
