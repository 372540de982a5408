// Gradients without the loss scale, in f32, and whether one of them is not a number (PaddlePaddle's op of that name, with
// the cast to f32 in the same look at the gradients).
//   out = x * (1 / scale)          of each x of the list
//   found = found or any x is infinite or NaN: 0 no, above 0 yes
//   x: a list of any shapes, f32, bf16 or f16;  out like x, f32;  scale, found [1] f32; found is updated in place
// Throws Error(config) when scale or found is not f32 [1].
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/loss_scaling.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_check(Inference& op) {
  for (const char* name : {"scale", "found"}) expect_one_number(op, name);
  const auto x = op.input_ids("x"), out = op.output_ids("out");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Value& value = op.program().value(x[i]);
    if (value.dtype != DType::f32 && value.dtype != DType::bf16 && value.dtype != DType::f16)
      op.fail(fmt::format("{} is {}, wanted f32, bf16 or f16", value.name, describe(value.dtype)));
    op.set(out[i], Shape(value.shape));
  }
}

}  // namespace

OpDef check_finite_and_unscale() {
  return {.inputs = {"x*", "scale", "found"},
          .outputs = {"out*", "found"},
          .infer = infer_check,
          .in_place = {"found"}};
}

}  // namespace fleetrun::runtime::ops
