#include "runtime/kernels/cpu/loops/elementwise.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {

std::int64_t elements_of(const OpView& op, const Value& value) {
  if (value.dtype != DType::f32)
    op.fail(fmt::format("{} is {}; the CPU kernel wants f32", value.name, fleetrun::describe(value.dtype)));
  return static_cast<std::int64_t>(value.bytes() / sizeof(float));
}

std::int64_t wide_or_narrow_elements(const OpView& op, const Value& value) {
  if (value.dtype != DType::f32 && value.dtype != DType::bf16)
    op.fail(fmt::format("{} is {}; the CPU kernel wants f32 or bf16", value.name,
                        fleetrun::describe(value.dtype)));
  return static_cast<std::int64_t>(value.bytes() / size_of(value.dtype));
}

LayoutChoice like_the_blocked(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const auto& inputs = op.op().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != kNone && !op.program().value(inputs[i]).layout.plain())
      return like_input(query, op.def().input_name(static_cast<int>(i)));
  return like_first_input(query, device);
}

LayoutChoice unless_padded(const LayoutQuery& query, const LayoutChoice& choice) {
  const auto padded = [&](std::size_t input) {
    const Value& value = query.op.program().value(query.op.op().inputs[input]);
    return choice.inputs[input].bytes >
           static_cast<std::size_t>(count_of(value.shape)) * size_of(value.dtype);
  };
  const auto& inputs = query.op.op().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != kNone && padded(i))
      return {std::vector<Layout>(choice.inputs.size()), std::vector<Layout>(choice.outputs.size())};
  return choice;
}

}  // namespace fleetrun::runtime::cpu
