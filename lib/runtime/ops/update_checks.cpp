#include "runtime/ops/update_checks.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {

void expect_like_param(const OpView& op, std::string_view other) {
  const Value& param = op.input("param");
  const Value& value = op.input(other);
  if (value.shape != param.shape || value.dtype != param.dtype)
    op.fail(fmt::format("{} is {} {}, wanted that of {}: {} {}", other, describe(value.shape),
                        describe(value.dtype), param.name, describe(param.shape), describe(param.dtype)));
}

void expect_update_settings(const OpView& op) {
  if (op.input("learning_rate").shape != Shape{1})
    op.fail(fmt::format("learning_rate is {}, wanted [1]", describe(op.input("learning_rate").shape)));
  if (!(op.number("weight_decay") >= 0))
    op.fail(fmt::format("weight_decay is {}, must be 0 or more", op.number("weight_decay")));
}

}  // namespace fleetrun::runtime::ops
