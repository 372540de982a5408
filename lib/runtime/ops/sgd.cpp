// Stochastic gradient descent with L2 weight decay, in place.
//   param -= learning_rate * (grad + weight_decay * param)
//   param, grad f32 of one shape and layout;  learning_rate [1];  attribute: weight_decay >= 0
// One op may update many parameters: param and grad are lists.
// Throws Error(config) when the shapes differ.
#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_sgd(Inference& op) {
  expect_like_param(op, "grad");
  expect_update_settings(op);
}

}  // namespace

OpDef sgd() {
  return {.inputs = {"param*", "grad*", "learning_rate"},
          .outputs = {"param*"},
          .infer = infer_sgd,
          .in_place = {"param"}};
}

}  // namespace fleetrun::runtime::ops
