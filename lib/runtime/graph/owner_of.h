// Which rank runs an op that only one rank runs: an update with reduce_strategy Reduce or with sharding, or any op in a pipeline. With
// several groups of ranks (strategy.sharding_configs) the owner is a place in the group, and each group has such a rank.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

int owner_of(const Op& op);        // kNone: every rank runs it
void set_owner(Op& op, int rank);  // kNone takes it away

// The owner of the op that uses a value first: who has a state or, in a pipeline or if parameters are gathered, a parameter. kNone when
// every rank has it, also if several owners use it.
int owner_of_user(const Program& program, ValueId value);

}  // namespace fleetrun::runtime
