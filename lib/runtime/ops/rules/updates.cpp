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

void expect_above_0(const OpView& op, const char* attribute) {
  if (const double value = op.number(attribute); !(value > 0))
    op.fail(fmt::format("{} is {}, must be above 0", attribute, value));
}

void infer_moments(Inference& op) {
  for (const char* name : {"grad", "moment1", "moment2"}) expect_like_param(op, name);
  for (const char* name : {"beta1_pow", "beta2_pow"})
    for (const ValueId id : op.input_ids(name))
      if (const Shape& shape = op.program().value(id).shape; shape != Shape{1})
        op.fail(fmt::format("{} is {}, wanted [1]", name, describe(shape)));
  expect_update_settings(op);
  for (const char* name : {"beta1", "beta2"})
    if (const double beta = op.number(name); !(beta >= 0 && beta < 1))
      op.fail(fmt::format("{} is {}, must be at least 0 and below 1", name, beta));
  expect_above_0(op, "epsilon");
}

OpDef update_by_moments() {
  return {.inputs = {"param*", "grad*", "moment1*", "moment2*", "beta1_pow*", "beta2_pow*", "learning_rate"},
          .outputs = {"param*", "moment1*", "moment2*", "beta1_pow*", "beta2_pow*"},
          .infer = infer_moments,
          .in_place = {"param", "moment1", "moment2", "beta1_pow", "beta2_pow"}};
}

}  // namespace fleetrun::runtime::ops
