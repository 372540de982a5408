// Every op waits for the op before it, with any number of threads. Collectives do not exist yet, so they may still run beside
// computation.
//
//   relu x=a -> y=b             relu x=a -> y=b
//   relu x=a -> y=c      =>     relu x=a -> y=c after b
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {

void sequential_execution(Program& program, const PassContext&) {
  for (std::size_t i = 1; i < program.ops.size(); ++i)
    for (const ValueId before : program.ops[i - 1].outputs)
      if (before != kNone) program.ops[i].after.push_back(before);
}

}  // namespace fleetrun::runtime
