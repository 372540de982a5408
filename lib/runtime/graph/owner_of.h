// Which rank runs an op that only one rank runs: an update with reduce_strategy Reduce.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

int owner_of(const Op& op);  // kNone: every rank runs it
void set_owner(Op& op, int rank);

// The owner of the op that uses a value first: who has an optimizer state. kNone when every rank has it.
int owner_of_user(const Program& program, ValueId value);

}  // namespace fleetrun::runtime
