// Mean of all elements.
//   y = sum(x) / count       x f32, any shape (sum in f64);  y [1]
//   dx = dy / count
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_mean(Inference& op) { op.set_output("y", {1}, op.input("x").dtype); }

void grad_mean(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  rule.set_gradient(
      "x", rule.emit("mean_grad", {{"dy", dy}}, {{"shape", rule.forward().input("x").shape}}).front());
}

std::vector<Sample> mean_samples() { return {{.inputs = {{"x", {{7}}}}}, {.inputs = {{"x", {{3, 1, 5}}}}}}; }

void infer_mean_grad(Inference& op) {
  if (op.input("dy").shape != Shape{1})
    op.fail(fmt::format("dy is {}, wanted [1]", describe(op.input("dy").shape)));
  op.set_output("dx", op.integers("shape"), op.input("dy").dtype);
}

}  // namespace

OpDef mean() {
  return {
      .inputs = {"x"}, .outputs = {"y"}, .infer = infer_mean, .gradient = grad_mean, .samples = mean_samples};
}

OpDef mean_grad() { return {.inputs = {"dy"}, .outputs = {"dx"}, .infer = infer_mean_grad}; }

}  // namespace fleetrun::runtime::ops
