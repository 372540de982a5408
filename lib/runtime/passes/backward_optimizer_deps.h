#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Updates begin when the whole backward pass is done, and follow each other in the order of their gradients. Without
// it an update runs as soon as its gradient is summed, beside what is left of the backward pass.
//
//   sgd param=a grad=a@GRAD ...         sgd param=a grad=a@GRAD ... after b@GRAD
//   sgd param=b grad=b@GRAD ...    =>   sgd param=b grad=b@GRAD ... after a
//
// The first waits for the backward ops that no other one waits for. Updates of different owners (reduce_strategy
// Reduce) are on different ranks: each owner's are chained by themselves.
void backward_optimizer_deps(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
