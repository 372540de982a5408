// Gradients in another floating-point type, each in the layout of its parameter: for their way to other ranks.
//   out = grad          of each of the lists: grad f32;  param of the same shape, only its layout is read;  out of the type asked for
//   attributes: dtype "f16" | "bf16"
// Throws Error(config) for other types, and when the shapes differ.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_cast_gradient(Inference& op) {
  const std::optional<DType> dtype = parse_dtype(op.text("dtype"));
  if (dtype != DType::f16 && dtype != DType::bf16)
    op.fail(fmt::format("dtype is \"{}\", wanted \"f16\" or \"bf16\"", op.text("dtype")));
  const auto grads = op.input_ids("grad"), params = op.input_ids("param"), out = op.output_ids("out");
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Value &grad = op.program().value(grads[i]), &param = op.program().value(params[i]);
    if (grad.shape != param.shape || grad.dtype != DType::f32)
      op.fail(fmt::format("grad is {} {}, wanted f32 {}", describe(grad.dtype), describe(grad.shape),
                          describe(param.shape)));
    op.set(out[i], Shape(grad.shape), *dtype);
  }
}

}  // namespace

OpDef cast_gradient() {
  return {.inputs = {"grad*", "param*"}, .outputs = {"out*"}, .infer = infer_cast_gradient};
}

}  // namespace fleetrun::runtime::ops
