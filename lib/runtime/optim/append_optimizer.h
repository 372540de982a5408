// Appends one update per parameter to a program: the optimizer as ops.
#pragma once
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// Adds the feed `learning_rate` f32[1], the states that the optimizer keeps per parameter
// (<parameter>.velocity; Adam's .moment1, .moment2, .beta1_pow, .beta2_pow), and the ops, in the order of
// `gradients`: what is read of each parameter (Value::of), in f32. Then the moving averages (average_weights.h).
// `optimizer` is the one of settle_optimizer.
void append_optimizer(Builder& builder, const job::OptimizerSpec& optimizer,
                      const std::vector<ValueId>& gradients);

}  // namespace fleetrun::runtime
