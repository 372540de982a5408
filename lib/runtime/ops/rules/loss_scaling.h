// What the ops of loss scaling ask of their arguments.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Throws Error(config) when the input `name` is not f32 [1].
void expect_one_number(const OpView& op, std::string_view name);

}  // namespace fleetrun::runtime::ops
