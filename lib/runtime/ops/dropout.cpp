// Dropout in training (Srivastava et al. 2014), scaled so that nothing has to be done in evaluation.
//   y = keep ? x / (1 - p) : 0       x f32, any shape;  y like x
//   dx = keep ? dy / (1 - p) : 0
// keep is drawn by rules/dropout.h from (seed and step of the run, key, index of the element), so that no mask is
// stored. attributes: p in [0, 1); key, different for each dropout of a program.
// Throws Error(config) when p is outside.
#include <fmt/format.h>

#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::ops {
namespace {

void check_attributes(const OpView& op) {
  const double p = op.number("p");
  if (!(p >= 0 && p < 1)) op.fail(fmt::format("p is {}, must be at least 0 and below 1", p));
  op.integer("key");
}

void infer_dropout(Inference& op) {
  check_attributes(op);
  infer_y_like_x(op);
}

void grad_dropout(GradientRule& rule) { set_gradient_by_one_op(rule, {}); }

std::vector<Sample> dropout_samples() {
  return {{.inputs = {{"x", {{5, 7}}}}, .attributes = {{"p", 0.3}, {"key", std::int64_t{1}}}},
          {.inputs = {{"x", {{2, 3, 3, 3}}}}, .attributes = {{"p", 0.0}, {"key", std::int64_t{2}}}}};
}

void infer_dropout_grad(Inference& op) {
  check_attributes(op);
  op.set_output("dx", op.input("dy").shape, op.input("dy").dtype);
}

}  // namespace

OpDef dropout() {
  return {.inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_dropout,
          .gradient = grad_dropout,
          .samples = dropout_samples,
          .may_share = {{"y", "x"}}};
}

OpDef dropout_grad() {
  return {.inputs = {"dy"}, .outputs = {"dx"}, .infer = infer_dropout_grad, .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
