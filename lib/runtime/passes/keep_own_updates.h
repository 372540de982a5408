// The last step of reduce_strategy Reduce and of sharding, when all ranks have agreed on one program: each keeps its own part.
#pragma once
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

enum class OwnGradients {
  kept,   // the gradients of all parameters have memory of their own
  alone,  // those that other ranks own become activations, whose memory is free after their reduction
};

// Takes away the ops that other ranks own, and the states that no op uses any more: optimizer states live with the
// owner alone. Where parameters are gathered, so do they.
void keep_own_updates(Program& program, int rank, OwnGradients gradients = OwnGradients::kept);

}  // namespace fleetrun::runtime
