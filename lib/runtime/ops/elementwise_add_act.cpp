// An addition and an activation of its sum or of one side, in one look at the tensors.
//   of "sum": out = act(x + y);  of "y": out = x + act(y)      x, y f32, any shape;  out like x
//   act "relu": act(v) = max(v, 0);  act "scale": act(v) = scale * v + bias
//   gradients: those of elementwise_add, and of relu or scale
//   attributes: act, of; scale and bias where act is "scale"
//   elementwise_add_act_grad(y, dy, more?): dx = dy + more where y > 0, else 0, with no `more` as relu_grad. The other
//     piece of a gradient that two readers gave is added on the way.
// Throws Error(config) when the shapes differ, or an attribute is another word.
#include <fmt/format.h>

#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_add_act(Inference& op) {
  expect_alike(op, "x", "y");
  if (op.text("of") != "sum" && op.text("of") != "y")
    op.fail(fmt::format("of is \"{}\", wanted \"sum\" or \"y\"", op.text("of")));
  if (op.text("act") == "scale") {
    op.number("scale");
    op.number("bias");
  } else if (op.text("act") != "relu") {
    op.fail(fmt::format("act is \"{}\", wanted \"relu\" or \"scale\"", op.text("act")));
  }
  op.set_output("out", op.input("x").shape, op.input("x").dtype);
}

ValueId through_act(GradientRule& rule, ValueId dout) {
  const OpView& forward = rule.forward();
  if (forward.text("act") == "scale")
    return rule.emit("scale", {{"x", dout}}, {{"scale", forward.number("scale")}, {"bias", 0.0}}).front();
  const ValueId positive = forward.text("of") == "sum" ? forward.output_id("out") : forward.input_id("y");
  return rule.emit("elementwise_add_act_grad", {{"y", positive}, {"dy", dout}}, {}).front();
}

void grad_add_act(GradientRule& rule) {
  const ValueId dout = rule.output_gradient("out");
  if (dout == kNone || (!rule.wants("x") && !rule.wants("y"))) return;
  const ValueId through = through_act(rule, dout);
  if (rule.wants("x")) rule.set_gradient("x", rule.forward().text("of") == "sum" ? through : dout);
  if (rule.wants("y")) rule.set_gradient("y", through);
}

std::vector<Sample> add_act_samples() {
  std::vector<Sample> samples;
  for (const std::string of : {"sum", "y"})
    for (const std::string act : {"relu", "scale"})
      samples.push_back({.inputs = {{"x", {{2, 3, 5, 1}}}, {"y", {{2, 3, 5, 1}, SampleInput::Fill::spread}}},
                         .attributes = {{"act", act}, {"of", of}, {"scale", -1.5}, {"bias", 0.25}}});
  return samples;
}

void infer_add_act_grad(Inference& op) {
  expect_alike(op, "y", "dy");
  if (op.has_input("more")) expect_alike(op, "y", "more");
  op.set_output("dx", op.input("y").shape, op.input("y").dtype);
}

}  // namespace

OpDef elementwise_add_act() {
  return {.inputs = {"x", "y"},
          .outputs = {"out"},
          .infer = infer_add_act,
          .gradient = grad_add_act,
          .samples = add_act_samples,
          .may_share = {{"out", "x"}, {"out", "y"}}};
}

OpDef elementwise_add_act_grad() {
  return {.inputs = {"y", "dy", "more?"},
          .outputs = {"dx"},
          .infer = infer_add_act_grad,
          .may_share = {{"dx", "dy"}, {"dx", "more"}}};
}

}  // namespace fleetrun::runtime::ops
