// Rectifier with a ceiling (Howard et al. 2017, arXiv:1704.04861, MobileNet), as PaddlePaddle has it.
//   y = min(max(x, 0), threshold)          x f32, any shape;  y like x
//   dx = dy where 0 < y < threshold, else 0
//   attributes: threshold (usually 6)
// Throws Error(config) when threshold is not above 0.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void check_threshold(const OpView& op) {
  const double threshold = op.number("threshold");
  if (!(threshold > 0)) op.fail(fmt::format("threshold is {}, must be above 0", threshold));
}

void infer_relu6(Inference& op) {
  check_threshold(op);
  op.set_output("y", op.input("x").shape, op.input("x").dtype);
}

void grad_relu6(GradientRule& rule) {
  const OpView& forward = rule.forward();
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  const Arguments inputs = {{"y", forward.output_id("y")}, {"dy", dy}};
  rule.set_gradient("x", rule.emit("relu6_grad", inputs, forward.op().attributes).front());
}

// Thresholds in the middle between two values of a spread, so that no difference crosses the kink.
std::vector<Sample> relu6_samples() {
  return {
      {.inputs = {{"x", {{3, 5}, SampleInput::Fill::spread}}}, .attributes = {{"threshold", 0.55}}},
      {.inputs = {{"x", {{2, 3, 5, 7}, SampleInput::Fill::spread}}}, .attributes = {{"threshold", 6.05}}}};
}

void infer_relu6_grad(Inference& op) {
  check_threshold(op);
  const Value& y = op.input("y");
  const Value& dy = op.input("dy");
  if (y.shape != dy.shape)
    op.fail("y is " + describe(y.shape) + ", dy is " + describe(dy.shape) + "; they must be alike");
  op.set_output("dx", y.shape, y.dtype);
}

}  // namespace

OpDef relu6() {
  return {.name = "relu6",
          .inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_relu6,
          .gradient = grad_relu6,
          .samples = relu6_samples,
          .may_share = {{"y", "x"}}};
}

OpDef relu6_grad() {
  return {.name = "relu6_grad",
          .inputs = {"y", "dy"},
          .outputs = {"dx"},
          .infer = infer_relu6_grad,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
