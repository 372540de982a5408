// What every optimizer op asks of its arguments.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Throws Error(config) unless each of `other` has the shape and dtype of its param.
void expect_like_param(const OpView& op, std::string_view other);

// Throws Error(config) unless learning_rate is [1] and weight_decay is 0 or more.
void expect_update_settings(const OpView& op);

// What Adam and its kin have: moments like param, powers [1], beta1 and beta2 in [0, 1), epsilon above 0.
// Throws Error(config) otherwise, and as expect_update_settings.
void infer_moments(Inference& op);
OpDef update_by_moments();  // the arguments that they share

// Throws Error(config) unless the attribute is above 0.
void expect_above_0(const OpView& op, const char* attribute);

}  // namespace fleetrun::runtime::ops
