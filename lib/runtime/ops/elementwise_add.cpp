// Sum of two tensors of one shape.
//   sum = x + y         x, y f32, any shape;  both gradients are that of the sum
// Throws Error(config) when the shapes differ.
#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_add(Inference& op) {
  expect_alike(op, "x", "y");
  op.set_output("sum", op.input("x").shape, op.input("x").dtype);
}

void grad_add(GradientRule& rule) {
  const ValueId dsum = rule.output_gradient("sum");
  if (dsum == kNone) return;
  if (rule.wants("x")) rule.set_gradient("x", dsum);
  if (rule.wants("y")) rule.set_gradient("y", dsum);
}

std::vector<Sample> add_samples() {
  return {{.inputs = {{"x", {{3, 5}}}, {"y", {{3, 5}}}}},
          {.inputs = {{"x", {{2, 3, 5, 1}}}, {"y", {{2, 3, 5, 1}}}}}};
}

}  // namespace

OpDef elementwise_add() {
  return {.inputs = {"x", "y"},
          .outputs = {"sum"},
          .infer = infer_add,
          .gradient = grad_add,
          .samples = add_samples,
          .may_share = {{"sum", "x"}, {"sum", "y"}}};
}

}  // namespace fleetrun::runtime::ops
