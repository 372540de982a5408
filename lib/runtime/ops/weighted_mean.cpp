// Mean of all elements, each times its weight. The weights need not add up to the number of elements.
//   y = sum(x * weight) / count       x, weight f32, alike (sum in f64);  y [1]
//   dx = dy * weight / count;         dweight = dy * x / count
// weighted_mean_grad is both: factor is weight or x.
// Throws Error(config) when x and weight differ in shape.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_weighted_mean(Inference& op) {
  if (op.input("weight").shape != op.input("x").shape)
    op.fail(fmt::format("weight is {}, wanted {} like x", describe(op.input("weight").shape),
                        describe(op.input("x").shape)));
  op.set_output("y", {1}, op.input("x").dtype);
}

void grad_weighted_mean(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone) return;
  const auto times = [&](const char* other) {
    return rule.emit("weighted_mean_grad", {{"dy", dy}, {"factor", rule.forward().input_id(other)}}, {})
        .front();
  };
  if (rule.wants("x")) rule.set_gradient("x", times("weight"));
  if (rule.wants("weight")) rule.set_gradient("weight", times("x"));
}

std::vector<Sample> weighted_mean_samples() { return {{.inputs = {{"x", {{7}}}, {"weight", {{7}}}}}}; }

void infer_weighted_mean_grad(Inference& op) {
  if (op.input("dy").shape != Shape{1})
    op.fail(fmt::format("dy is {}, wanted [1]", describe(op.input("dy").shape)));
  op.set_output("dx", op.input("factor").shape, op.input("factor").dtype);
}

}  // namespace

OpDef weighted_mean() {
  return {.inputs = {"x", "weight"},
          .outputs = {"y"},
          .infer = infer_weighted_mean,
          .gradient = grad_weighted_mean,
          .samples = weighted_mean_samples};
}

OpDef weighted_mean_grad() {
  return {.inputs = {"dy", "factor"}, .outputs = {"dx"}, .infer = infer_weighted_mean_grad};
}

}  // namespace fleetrun::runtime::ops
