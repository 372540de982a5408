// What ops that compare scores with class numbers ask of their arguments.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Throws Error(config) unless `scores` is [N, classes] and label is i32 [N].
void expect_scores_and_labels(const OpView& op, std::string_view scores);

}  // namespace fleetrun::runtime::ops
