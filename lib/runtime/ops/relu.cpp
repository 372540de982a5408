// Rectifier (Nair and Hinton 2010).
//   y = max(x, 0)          x f32, any shape;  y like x
//   dx = dy where y > 0, else 0
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_relu(Inference& op) { op.set_output("y", op.input("x").shape, op.input("x").dtype); }

void grad_relu(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  rule.set_gradient("x",
                    rule.emit("relu_grad", {{"y", rule.forward().output_id("y")}, {"dy", dy}}, {}).front());
}

std::vector<Sample> relu_samples() {
  return {{.inputs = {{"x", {{3, 5}, SampleInput::Fill::spread}}}},
          {.inputs = {{"x", {{2, 3, 5, 7}, SampleInput::Fill::spread}}}}};
}

void infer_relu_grad(Inference& op) {
  const Value& y = op.input("y");
  const Value& dy = op.input("dy");
  if (y.shape != dy.shape)
    op.fail("y is " + describe(y.shape) + ", dy is " + describe(dy.shape) + "; they must be alike");
  op.set_output("dx", y.shape, y.dtype);
}

}  // namespace

OpDef relu() {
  return {.name = "relu",
          .inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_relu,
          .gradient = grad_relu,
          .samples = relu_samples,
          .may_share = {{"y", "x"}}};
}

OpDef relu_grad() {
  return {.name = "relu_grad",
          .inputs = {"y", "dy"},
          .outputs = {"dx"},
          .infer = infer_relu_grad,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
