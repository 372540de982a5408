// The same numbers in another floating-point type; narrowing rounds to the nearest, ties to even.
//   y = x          of each x of the list: f32, f16 or bf16, any shape, all of one type;  y like x, but of the type asked for
//   dx = dy, cast back to the type of x, for lists of one
//   attributes: dtype "f32" | "f16" | "bf16"
// Throws Error(config) for other types.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

bool floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

void infer_cast(Inference& op) {
  const DType from = op.input("x").dtype;
  if (!floating(from)) op.fail(fmt::format("x is {}, wanted f32, f16 or bf16", describe(from)));
  const std::optional<DType> dtype = parse_dtype(op.text("dtype"));
  if (!dtype || !floating(*dtype))
    op.fail(fmt::format("dtype is \"{}\", wanted \"f32\", \"f16\" or \"bf16\"", op.text("dtype")));
  const auto x = op.input_ids("x"), y = op.output_ids("y");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Value& value = op.program().value(x[i]);
    if (value.dtype != from)
      op.fail(fmt::format("{} is {}, wanted {} like the first of the list", value.name, describe(value.dtype),
                          describe(from)));
    op.set(y[i], Shape(value.shape), *dtype);
  }
}

void grad_cast(GradientRule& rule) {
  const ValueId dy = rule.output_gradient("y");
  if (dy == kNone || !rule.wants("x")) return;
  const std::string back(describe(rule.forward().input("x").dtype));
  rule.set_gradient("x", rule.emit("cast", {{"x", dy}}, {{"dtype", back}}).front());
}

// Between the wide type and itself: differences are too small for the narrow ones.
std::vector<Sample> cast_samples() {
  return {{.inputs = {{"x", {{2, 3, 5}}}}, .attributes = {{"dtype", std::string("f32")}}}};
}

}  // namespace

OpDef cast() {
  return {.inputs = {"x*"},
          .outputs = {"y*"},
          .infer = infer_cast,
          .gradient = grad_cast,
          .samples = cast_samples};
}

}  // namespace fleetrun::runtime::ops
