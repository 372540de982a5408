// Momentum as PaddlePaddle defines it (phi/kernels/impl/momentum_kernel_impl.h), with L2 decay, in place.
//   g = grad + weight_decay * param
//   velocity = mu * velocity + g
//   param -= learning_rate * velocity               use_nesterov: learning_rate * (g + mu * velocity)
//   param, grad, velocity f32 of one shape and layout;  learning_rate [1]
//   attributes: mu, use_nesterov, weight_decay
// One op may update many parameters: param, grad and velocity are lists.
// Throws Error(config) when the shapes differ or mu is not in [0, 1).
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_momentum(Inference& op) {
  expect_like_param(op, "grad");
  expect_like_param(op, "velocity");
  expect_update_settings(op);
  op.flag("use_nesterov");
  const double mu = op.number("mu");
  if (!(mu >= 0 && mu < 1)) op.fail(fmt::format("mu is {}, must be at least 0 and below 1", mu));
}

}  // namespace

OpDef momentum() {
  return {.inputs = {"param*", "grad*", "velocity*", "learning_rate"},
          .outputs = {"param*", "velocity*"},
          .infer = infer_momentum,
          .in_place = {"param", "velocity"}};
}

}  // namespace fleetrun::runtime::ops
