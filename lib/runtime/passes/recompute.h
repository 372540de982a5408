// Less memory for more computation (Chen et al. 2016, arXiv:1604.06174): of the forward pass only the values at the cuts
// between its segments are kept; what the backward pass needs of a segment is made again right before it is needed.
//   a -> [x1 -> x2] -> b -> ...  b@GRAD -> x2_grad(x1, x2)
//   a -> [x1 -> x2] -> b -> ...  b@GRAD -> [a -> x1' -> x2'] -> x2_grad(x1', x2')
// Cuts are where one value alone carries on: those that strategy.recompute_configs.checkpoints names, or those that let
// least memory be held at a time. The last segment is not made again: its gradients come first. What is small (vectors:
// statistics of channels, sums) and what other ranks had a part in is kept. An op that is run again changes no state.
#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Needs the backward pass to be there. Throws Error(config) for a checkpoint that is not a cut.
void recompute(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
