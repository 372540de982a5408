#include "runtime/ops/rules/conv2d.h"

#include <fmt/format.h>

#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::ops {
namespace {

// Shape of y for x and w. Throws Error(config) when w does not fit x.
Shape convolved(const OpView& op, const Shape& x, const Shape& w) {
  const std::int64_t groups = op.integer("groups");
  if (x.size() != 4) op.fail(fmt::format("x is {}, wanted [N, C, H, W]", describe(x)));
  if (groups < 1 || x[1] % groups != 0)
    op.fail(fmt::format("x is {}, {} groups do not divide its channels", describe(x), groups));
  if (w.size() != 4 || w[1] != x[1] / groups || w[0] % groups != 0)
    op.fail(fmt::format("w is {}, wanted [O, {}, kh, kw] for x {} in {} groups", describe(w), x[1] / groups,
                        describe(x), groups));
  return moved_over(op, read_window(op, w[2], w[3]), x, w[0]);
}

}  // namespace

void infer_conv2d(Inference& op) {
  const Shape& w = op.input("w").shape;
  const Shape y = convolved(op, op.input("x").shape, w);
  if (op.has_input("b") && op.input("b").shape != Shape{w[0]})
    op.fail(fmt::format("b is {}, wanted [{}]", describe(op.input("b").shape), w[0]));
  op.set_output("y", y, op.input("x").dtype);
}

void infer_conv2d_grad_input(Inference& op) {
  const Shape& dx = op.integers("input_shape");
  const Shape y = convolved(op, dx, op.input("w").shape);
  if (op.input("dy").shape != y)
    op.fail(fmt::format("dy is {}, wanted {}", describe(op.input("dy").shape), describe(y)));
  op.set_output("dx", dx, op.input("dy").dtype);
}

void infer_conv2d_grad_weights(Inference& op) {
  const Shape& dw = op.integers("weight_shape");
  const Shape y = convolved(op, op.input("x").shape, dw);
  if (op.input("dy").shape != y)
    op.fail(fmt::format("dy is {}, wanted {}", describe(op.input("dy").shape), describe(y)));
  op.set_output("dw", dw, op.input("x").dtype);
  op.set_output("db", {dw[0]}, op.input("x").dtype);
}

void emit_conv2d_grad_weights(GradientRule& rule, const std::string& type) {
  const OpView& forward = rule.forward();
  const bool bias = forward.has_input("b") && rule.wants("b");
  if (!rule.wants("w") && !bias) return;
  Attributes attributes = forward.op().attributes;
  attributes["weight_shape"] = forward.input("w").shape;
  const auto ids =
      rule.emit(type, {{"x", forward.input_id("x")}, {"dy", rule.output_gradient("y")}}, attributes,
                bias ? std::vector<std::string>{"dw", "db"} : std::vector<std::string>{"dw"});
  if (rule.wants("w")) rule.set_gradient("w", ids[0]);
  if (bias) rule.set_gradient("b", ids[1]);
}

}  // namespace fleetrun::runtime::ops
