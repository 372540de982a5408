#pragma once
#include <fmt/format.h>

#include "cuda/plugin/launch.h"
#include "runtime/graph/op_def.h"

namespace fleetrun::cuda {

// The type of a value's elements as kernels take it. Fails unless it is f32, f16 or bf16.
inline Number number_of(const runtime::OpView& op, const runtime::Value& value) {
  switch (value.dtype) {
    case DType::f32:
      return Number::f32;
    case DType::f16:
      return Number::f16;
    case DType::bf16:
      return Number::bf16;
    default:
      op.fail(fmt::format("{} is {}, wanted f32, f16 or bf16", value.name, describe(value.dtype)));
  }
}

}  // namespace fleetrun::cuda
