// The last step of reduce_strategy Reduce, when all ranks have agreed on one program: each keeps its own part.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// Takes away the ops that other ranks own, and the states that no op uses any more: optimizer states live with the
// owner alone.
void keep_own_updates(Program& program, int rank);

}  // namespace fleetrun::runtime
