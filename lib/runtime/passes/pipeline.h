// The passes in the order in which they run, with a check of the program after each.
#pragma once
#include "runtime/passes/pass.h"

namespace fleetrun::runtime {

// Throws Error(internal) naming the pass whose result does not verify.
void run_passes(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
