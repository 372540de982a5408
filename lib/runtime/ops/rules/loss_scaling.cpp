#include "runtime/ops/rules/loss_scaling.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {

void expect_one_number(const OpView& op, std::string_view name) {
  const Value& value = op.input(name);
  if (value.shape != Shape{1} || value.dtype != DType::f32)
    op.fail(fmt::format("{} is {} {}, wanted f32 [1]", name, describe(value.dtype), describe(value.shape)));
}

}  // namespace fleetrun::runtime::ops
