// What model.freeze may ask for.
#pragma once
#include <string>
#include <vector>

#include "runtime/graph/program.h"
#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime {

// `program` is the forward part, built with these patterns (Builder). Says how many parameters are trained. Throws Error(config) for
// a pattern that no weight has, if no parameter is left, and for a frozen batch norm after a trained layer: the gradient of a
// batch norm needs the statistics of the batch.
void check_frozen(const Program& program, const std::vector<std::string>& frozen, const PassContext& context);

}  // namespace fleetrun::runtime
