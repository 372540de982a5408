// Fully connected layer.
//   y = x w^T + b       x [N, ...] f32, seen as [N, in];  w [out, in];  b [out], optional;  y [N, out]
//   dx = dy w           dw = dy^T x           db = sum of dy over N
// Throws Error(config) when w is not [out, in] for the features that x has, b is not [out], or a sample has more features than
// oneDNN counts, which divides by their number modulo 2^32.
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

constexpr std::int64_t kMostFeatures = std::numeric_limits<std::int32_t>::max();

void infer_fc(Inference& op) {
  const Shape& x = op.input("x").shape;
  const Shape& w = op.input("w").shape;
  if (x.size() < 2) op.fail(fmt::format("x is {}, wanted [N, features...]", describe(x)));
  const std::int64_t features = count_of({x.begin() + 1, x.end()});
  if (features > kMostFeatures)
    op.fail(fmt::format("x is {}: {} features a sample, wanted at most {}", describe(x), features,
                        kMostFeatures));
  if (w.size() != 2 || w[1] != features)
    op.fail(fmt::format("w is {}, wanted [out, {}] for x {}", describe(w), features, describe(x)));
  if (op.has_input("b") && op.input("b").shape != Shape{w[0]})
    op.fail(fmt::format("b is {}, wanted [{}]", describe(op.input("b").shape), w[0]));
  op.set_output("y", {x[0], w[0]}, op.input("x").dtype);
}

void grad_fc(GradientRule& rule) {
  const OpView& forward = rule.forward();
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone) return;
  if (rule.wants("x")) {
    const Shape& shape = forward.input("x").shape;
    const auto ids =
        rule.emit("fc_grad_input", {{"dy", dy}, {"w", forward.input_id("w")}}, {{"input_shape", shape}});
    rule.set_gradient("x", ids.front());
  }
  const bool bias = forward.has_input("b") && rule.wants("b");
  if (!rule.wants("w") && !bias) return;
  const auto ids = rule.emit("fc_grad_weights", {{"x", forward.input_id("x")}, {"dy", dy}}, {},
                             bias ? std::vector<std::string>{"dw", "db"} : std::vector<std::string>{"dw"});
  if (rule.wants("w")) rule.set_gradient("w", ids[0]);
  if (bias) rule.set_gradient("b", ids[1]);
}

std::vector<Sample> fc_samples() {
  return {{.inputs = {{"x", {{3, 5}}}, {"w", {{7, 5}}}, {"b", {{7}}}}},
          {.inputs = {{"x", {{1, 9}}}, {"w", {{1, 9}}}}},
          {.inputs = {{"x", {{4, 3, 5, 2}}}, {"w", {{6, 30}}}, {"b", {{6}}}}},
          {.inputs = {{"x", {{2, 32, 3, 3}}}, {"w", {{17, 288}}}, {"b", {{17}}}}}};
}

void infer_fc_grad_input(Inference& op) {
  const Shape& dy = op.input("dy").shape;
  const Shape& w = op.input("w").shape;
  if (dy.size() != 2 || w.size() != 2 || dy[1] != w[0])
    op.fail(fmt::format("dy is {}, w is {}; wanted [N, out] and [out, in]", describe(dy), describe(w)));
  op.set_output("dx", op.integers("input_shape"), op.input("dy").dtype);
}

void infer_fc_grad_weights(Inference& op) {
  const Shape& x = op.input("x").shape;
  const Shape& dy = op.input("dy").shape;
  if (x.size() < 2 || dy.size() != 2 || dy[0] != x[0])
    op.fail(
        fmt::format("x is {}, dy is {}; wanted [N, features...] and [N, out]", describe(x), describe(dy)));
  op.set_output("dw", {dy[1], count_of({x.begin() + 1, x.end()})}, op.input("x").dtype);
  op.set_output("db", {dy[1]}, op.input("x").dtype);
}

}  // namespace

OpDef fc() {
  return {.inputs = {"x", "w", "b?"},
          .outputs = {"y"},
          .infer = infer_fc,
          .gradient = grad_fc,
          .samples = fc_samples};
}

OpDef fc_grad_input() { return {.inputs = {"dy", "w"}, .outputs = {"dx"}, .infer = infer_fc_grad_input}; }

OpDef fc_grad_weights() {
  return {.inputs = {"x", "dy"}, .outputs = {"dw", "db"}, .infer = infer_fc_grad_weights};
}

}  // namespace fleetrun::runtime::ops
