// Gradients of k_steps batches, added up on this rank.
//   merged += grad
//   in each k_steps-th step also: out = scale * merged;  merged = 0         (in the other steps, out is not written)
//   grad f32, bf16 or f16, any shape;  merged f32, of that shape;  out like grad;  attributes: k_steps, scale
// Throws Error(config) when the shapes differ, merged is not f32, or k_steps is below 1.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_merge(Inference& op) {
  const Value& grad = op.input("grad");
  const Value& merged = op.input("merged");
  if (merged.shape != grad.shape || merged.dtype != DType::f32)
    op.fail(fmt::format("merged is {} {}, wanted f32 {}", describe(merged.dtype), describe(merged.shape),
                        describe(grad.shape)));
  if (op.integer("k_steps") < 1)
    op.fail(fmt::format("k_steps is {}, must be 1 or more", op.integer("k_steps")));
  op.number("scale");
  op.set_output("out", Shape(grad.shape), grad.dtype);
}

}  // namespace

OpDef merge_gradient() {
  return {.inputs = {"grad", "merged"},
          .outputs = {"out", "merged"},
          .infer = infer_merge,
          .in_place = {"merged"}};
}

}  // namespace fleetrun::runtime::ops
