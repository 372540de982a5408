// A gradient in another floating-point type, in the layout of its parameter: for its way to other ranks.
//   out = grad          grad f32;  param: of the same shape, only its layout is read;  out of the type asked for
//   attributes: dtype "f16" | "bf16"
// Throws Error(config) for other types, and when the shapes differ.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_cast_gradient(Inference& op) {
  const Value& grad = op.input("grad");
  if (grad.shape != op.input("param").shape || grad.dtype != DType::f32)
    op.fail(fmt::format("grad is {} {}, wanted f32 {}", describe(grad.dtype), describe(grad.shape),
                        describe(op.input("param").shape)));
  const std::optional<DType> dtype = parse_dtype(op.text("dtype"));
  if (dtype != DType::f16 && dtype != DType::bf16)
    op.fail(fmt::format("dtype is \"{}\", wanted \"f16\" or \"bf16\"", op.text("dtype")));
  op.set_output("out", Shape(grad.shape), *dtype);
}

}  // namespace

OpDef cast_gradient() {
  return {.inputs = {"grad", "param"}, .outputs = {"out"}, .infer = infer_cast_gradient};
}

}  // namespace fleetrun::runtime::ops
