// LARS (You et al. 2017, arXiv:1708.03888) with momentum, as PaddlePaddle has it (paddle/fluid/operators/optimizers/
// lars_momentum_op.h), in place. Each parameter has a learning rate of its own.
//   rate = learning_rate * lars_coeff * |param| / (|grad| + weight_decay * |param| + epsilon)
//   rate = learning_rate where weight_decay, |param| or |grad| is 0
//   velocity = mu * velocity + rate * (grad + weight_decay * param)
//   param -= velocity
//   param, grad, velocity f32 of one shape and layout;  learning_rate [1]
//   attributes: mu, lars_coeff, weight_decay, epsilon
// One op may update many parameters: param, grad and velocity are lists.
// Throws Error(config) when the shapes differ, mu is not in [0, 1), lars_coeff is not above 0 or epsilon is below 0.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_lars(Inference& op) {
  expect_like_param(op, "grad");
  expect_like_param(op, "velocity");
  expect_update_settings(op);
  expect_above_0(op, "lars_coeff");
  if (const double mu = op.number("mu"); !(mu >= 0 && mu < 1))
    op.fail(fmt::format("mu is {}, must be at least 0 and below 1", mu));
  if (const double epsilon = op.number("epsilon"); !(epsilon >= 0))
    op.fail(fmt::format("epsilon is {}, must be 0 or more", epsilon));
}

}  // namespace

OpDef lars() {
  return {.inputs = {"param*", "grad*", "velocity*", "learning_rate"},
          .outputs = {"param*", "velocity*"},
          .infer = infer_lars,
          .in_place = {"param", "velocity"}};
}

}  // namespace fleetrun::runtime::ops
