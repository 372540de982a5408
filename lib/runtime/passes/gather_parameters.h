// Stage 3 of strategy.sharding, after layouts are decided: one rank of a group keeps a parameter and sends it to the others right before
// they use it. It does so for the forward pass and again for the backward pass, so that its memory is free in between.
#pragma once
#include <map>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// `owners`: those of the values that one rank keeps. `communicator`: that of the group. All ranks get the same program; keep_own_updates
// makes the part of each rank of it.
void gather_parameters(Program& program, const std::map<ValueId, int>& owners, int communicator);

// The owners of all parameters of a training program: the ranks that update them.
std::map<ValueId, int> owners_of_parameters(const Program& program);

}  // namespace fleetrun::runtime
