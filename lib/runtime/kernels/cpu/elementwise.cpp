#include "runtime/kernels/cpu/elementwise.h"

#include <fmt/format.h>

namespace fleetrun::runtime::cpu {

std::int64_t elements_of(const OpView& op, const Value& value) {
  if (value.dtype != DType::f32)
    op.fail(fmt::format("{} is {}; the CPU kernel wants f32", value.name, fleetrun::describe(value.dtype)));
  return static_cast<std::int64_t>(value.bytes() / sizeof(float));
}

}  // namespace fleetrun::runtime::cpu
