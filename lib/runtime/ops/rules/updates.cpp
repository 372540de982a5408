#include "runtime/ops/rules/updates.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {

void expect_like_param(const OpView& op, std::string_view other) {
  const auto params = op.input_ids("param"), others = op.input_ids(other);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Value& param = op.program().value(params[i]);
    const Value& value = op.program().value(others[i]);
    if (value.shape != param.shape || value.dtype != param.dtype)
      op.fail(fmt::format("{} is {} {}, wanted that of {}: {} {}", other, describe(value.shape),
                          describe(value.dtype), param.name, describe(param.shape), describe(param.dtype)));
  }
}

void expect_update_settings(const OpView& op) {
  if (op.input("learning_rate").shape != Shape{1})
    op.fail(fmt::format("learning_rate is {}, wanted [1]", describe(op.input("learning_rate").shape)));
  if (!(op.number("weight_decay") >= 0))
    op.fail(fmt::format("weight_decay is {}, must be 0 or more", op.number("weight_decay")));
}

}  // namespace fleetrun::runtime::ops
