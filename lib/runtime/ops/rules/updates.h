// What every optimizer op asks of its arguments.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Throws Error(config) unless each of `other` has the shape and dtype of its param.
void expect_like_param(const OpView& op, std::string_view other);

// Throws Error(config) unless learning_rate is [1] and weight_decay is 0 or more.
void expect_update_settings(const OpView& op);

}  // namespace fleetrun::runtime::ops
