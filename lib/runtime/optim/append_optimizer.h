// Appends one update per parameter to a program: the optimizer as ops.
#pragma once
#include "job/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// Adds the feed `learning_rate` f32[1], the states that the optimizer keeps per parameter
// (<parameter>.velocity; Adam's .moment1, .moment2, .beta1_pow, .beta2_pow), and the ops, in the order of
// the gradients' production.
void append_optimizer(Builder& builder, const job::OptimizerSpec& optimizer);

}  // namespace fleetrun::runtime
