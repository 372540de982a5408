// A handful of ops that exist on paper only, for tests of graphs and passes.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

inline void infer_like_x(Inference& op) { op.set_output("y", op.input("x").shape); }

// y = x * w (any shapes, y like x), the gradients made by times_grad_x and times_grad_w.
inline void grad_times(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (rule.wants("x"))
    rule.set_gradient(
        "x", rule.emit("times_grad_x", {{"x", dy}, {"w", rule.forward().input_id("w")}}, {}).front());
  if (rule.wants("w"))
    rule.set_gradient(
        "w", rule.emit("times_grad_w", {{"x", rule.forward().input_id("x")}, {"dy", dy}}, {}).front());
}

inline void grad_square(GradientRule& rule) {
  rule.set_gradient(
      "x", rule.emit("times", {{"x", rule.output_gradient("y")}, {"w", rule.forward().input_id("x")}}, {})
               .front());
}

inline const OpTable& toy_ops() {
  static const OpTable table = {
      {"times",
       {.name = "times",
        .inputs = {"x", "w"},
        .outputs = {"y"},
        .infer = infer_like_x,
        .gradient = grad_times}},
      {"times_grad_x",
       {.name = "times_grad_x", .inputs = {"x", "w"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"times_grad_w",
       {.name = "times_grad_w", .inputs = {"x", "dy"}, .outputs = {"y"}, .infer = infer_like_x}},
      {"square",
       {.name = "square", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x, .gradient = grad_square}},
      {"count",
       {.name = "count", .inputs = {"x"}, .outputs = {"y"}, .infer = infer_like_x}},  // nothing flows back
      {"elementwise_add",
       {.name = "elementwise_add",
        .inputs = {"x", "y"},
        .outputs = {"out"},
        .infer = [](Inference& op) { op.set_output("out", op.input("x").shape); }}},
      {"fill",
       {.name = "fill",
        .inputs = {},
        .outputs = {"y"},
        .infer = [](Inference& op) { op.set_output("y", op.integers("shape")); }}},
      {"update",
       {.name = "update",
        .inputs = {"param", "grad"},
        .outputs = {"param"},
        .infer = [](Inference&) {},
        .in_place = {"param"}}},
      {"all_reduce",
       {.name = "all_reduce",
        .inputs = {"x*"},
        .outputs = {"x*"},
        .infer = [](Inference&) {},
        .in_place = {"x"}}},
  };
  return table;
}

}  // namespace fleetrun::runtime
