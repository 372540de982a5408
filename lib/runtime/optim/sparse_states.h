// States of strategy.dgc, which differ between the ranks: what a rank has not sent yet, and the velocities of these parameters.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// States that only such a training has. Empty without dgc.
std::vector<ValueId> residuals_of(const Program& program);

// States that a training with momentum has, too.
std::vector<ValueId> sparse_velocities_of(const Program& program);

// Steps of a training that come before the first one in which ranks send parts of gradients. 0 without dgc.
std::int64_t steps_before_sparse(const Program& program);

}  // namespace fleetrun::runtime
