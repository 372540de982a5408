// Maximum or average over a moving window of each channel.
//   y[n,c,i,j] = max, or sum / count, of x[n, c, i*stride + p - padding, j*stride + q - padding]
//   x [N, C, H, W] f32;  y [N, C, H', W'] with H' = (H + paddings - kernel) / stride + 1, rounded down
//   attributes: kind "max" | "average", kernel [2], strides [2], paddings [2] or [4] (top, bottom, left,
//   right), exclusive: an average counts the elements of x in the window, not the padding
//   Global pooling is kind "average" with kernel [H, W]: y is [N, C, 1, 1].
//   pool2d_grad(x, y, dy): dy goes to the first maximum of each window in row order, or evenly to what was
//   averaged (then without y; of x only the shape and the layout matter).
// Throws Error(config) when the window does not fit, or padding is as large as the window.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::ops {
namespace {

bool takes_maximum(const OpView& op) {
  const std::string& kind = op.text("kind");
  if (kind != "max" && kind != "average") op.fail("kind is \"" + kind + "\", wanted \"max\" or \"average\"");
  return kind == "max";
}

Shape pooled(const OpView& op, const Shape& x) {
  if (x.size() != 4) op.fail(fmt::format("x is {}, wanted [N, C, H, W]", describe(x)));
  const Shape& kernel = op.integers("kernel");
  if (kernel.size() != 2 || kernel[0] < 1 || kernel[1] < 1)
    op.fail(fmt::format("kernel is {}, wanted two numbers of 1 or more", describe(kernel)));
  op.flag("exclusive");
  const Window window = read_window(op, kernel[0], kernel[1]);
  for (std::size_t axis = 0; axis < 2; ++axis)
    if (window.before[axis] >= window.kernel[axis] || window.after[axis] >= window.kernel[axis])
      op.fail(fmt::format("paddings {} must be smaller than kernel {}", describe(op.integers("paddings")),
                          describe(kernel)));
  return moved_over(op, window, x, x[1]);
}

void infer_pool2d(Inference& op) {
  takes_maximum(op);
  const Shape y = pooled(op, op.input("x").shape);
  op.set_output("y", y, op.input("x").dtype);
}

void grad_pool2d(GradientRule& rule) {
  const OpView& forward = rule.forward();
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  Arguments inputs = {{"x", forward.input_id("x")}, {"dy", dy}};
  if (takes_maximum(forward)) inputs.emplace_back("y", forward.output_id("y"));
  rule.set_gradient("x", rule.emit("pool2d_grad", inputs, forward.op().attributes).front());
}

Attributes pooling(const std::string& kind, Shape kernel, Shape strides, Shape paddings) {
  return {{"kind", kind},
          {"kernel", std::move(kernel)},
          {"strides", std::move(strides)},
          {"paddings", std::move(paddings)},
          {"exclusive", true}};
}

Sample pool_sample(Shape x, Attributes attributes) {
  return {.inputs = {{"x", {std::move(x), SampleInput::Fill::spread}}}, .attributes = std::move(attributes)};
}

std::vector<Sample> pool2d_samples() {
  std::vector<Sample> samples = {
      pool_sample({2, 3, 6, 8}, pooling("max", {2, 2}, {2, 2}, {0, 0})),
      pool_sample({1, 5, 7, 9}, pooling("max", {3, 2}, {2, 1}, {1, 0})),
      pool_sample({2, 3, 5, 7}, pooling("average", {3, 3}, {2, 2}, {1, 1})),
      pool_sample({1, 2, 6, 5}, pooling("average", {3, 2}, {1, 2}, {2, 1, 0, 1})),
      pool_sample({2, 17, 4, 3}, pooling("average", {4, 3}, {1, 1}, {0, 0})),
  };
  samples[3].attributes["exclusive"] = false;
  return samples;
}

void infer_pool2d_grad(Inference& op) {
  const Value& x = op.input("x");
  const Shape y = pooled(op, x.shape);
  if (op.input("dy").shape != y)
    op.fail(fmt::format("dy is {}, wanted {}", describe(op.input("dy").shape), describe(y)));
  if (takes_maximum(op) && op.input("y").shape != y)
    op.fail(fmt::format("y is {}, wanted {}", describe(op.input("y").shape), describe(y)));
  op.set_output("dx", Shape(x.shape), x.dtype);
}

}  // namespace

OpDef pool2d() {
  return {.inputs = {"x"},
          .outputs = {"y"},
          .infer = infer_pool2d,
          .gradient = grad_pool2d,
          .samples = pool2d_samples};
}

OpDef pool2d_grad() { return {.inputs = {"x", "y?", "dy"}, .outputs = {"dx"}, .infer = infer_pool2d_grad}; }

}  // namespace fleetrun::runtime::ops
