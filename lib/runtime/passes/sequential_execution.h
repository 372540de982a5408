#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Every op waits for the one in front of it, however many threads there are. Collectives do not exist yet: they may
// still go on beside computation.
//
//   relu x=a -> y=b             relu x=a -> y=b
//   relu x=a -> y=c      =>     relu x=a -> y=c after b
void sequential_execution(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
