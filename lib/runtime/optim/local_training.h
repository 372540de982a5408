// strategy.localsgd and adaptive_localsgd: each rank trains weights of its own, and the op average_parameters replaces them by their mean
// in some steps. The snapshots are the weights of the last mean, the same on every rank.
#pragma once
#include <utility>
#include <vector>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

bool trains_locally(const Program& program);

// Weights (parameters and running statistics), each with its snapshot. Empty unless the ranks train locally.
std::vector<std::pair<ValueId, ValueId>> snapshots_of(const Program& program);

// States that only such a training has, the same on every rank: the snapshots and the schedule of adaptive_localsgd.
std::vector<ValueId> states_of_averaging(const Program& program);

}  // namespace fleetrun::runtime
