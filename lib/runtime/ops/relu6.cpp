// Rectifier with a ceiling (Howard et al. 2017, arXiv:1704.04861, MobileNet), as PaddlePaddle has it.
//   y = min(max(x, 0), threshold)          x f32, any shape;  y like x
//   dx = dy where 0 < y < threshold, else 0
//   attributes: threshold (usually 6)
// Throws Error(config) when threshold is not above 0.
#include <fmt/format.h>

#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::ops {
namespace {

void check_threshold(const OpView& op) {
  const double threshold = op.number("threshold");
  if (!(threshold > 0)) op.fail(fmt::format("threshold is {}, must be above 0", threshold));
}

void infer_relu6(Inference& op) {
  check_threshold(op);
  infer_y_like_x(op);
}

// Thresholds in the middle between two values of a spread, so that no difference crosses the kink. f16 and bf16 round 0.44 down.
std::vector<Sample> relu6_samples() {
  return {
      {.inputs = {{"x", {{3, 5}, SampleInput::Fill::spread}}}, .attributes = {{"threshold", 0.44}}},
      {.inputs = {{"x", {{2, 3, 5, 7}, SampleInput::Fill::spread}}}, .attributes = {{"threshold", 6.05}}}};
}

void infer_relu6_grad(Inference& op) {
  check_threshold(op);
  infer_dx_like_first(op);
}

}  // namespace

OpDef relu6() {
  OpDef def = activation(GradientReads::y);
  def.infer = infer_relu6;
  def.samples = relu6_samples;
  return def;
}

OpDef relu6_grad() {
  OpDef def = activation_grad(GradientReads::y);
  def.infer = infer_relu6_grad;
  return def;
}

}  // namespace fleetrun::runtime::ops
