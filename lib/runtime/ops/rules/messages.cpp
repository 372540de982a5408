#include "runtime/ops/rules/messages.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {

void expect_sum(const OpView& op) {
  if (op.text("op") != "sum") op.fail(fmt::format("op is \"{}\", wanted \"sum\"", op.text("op")));
}

void expect_one_dtype(const OpView& op) {
  const Value& first = op.input("x");
  for (const ValueId id : op.input_ids("x"))
    if (const Value& value = op.program().value(id); value.dtype != first.dtype)
      op.fail(fmt::format("{} is {}, {} is {}; they must be alike", first.name, describe(first.dtype),
                          value.name, describe(value.dtype)));
}

}  // namespace fleetrun::runtime::ops
