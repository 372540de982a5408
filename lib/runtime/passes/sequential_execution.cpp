// Every op waits for the one in front of it, however many threads there are. Collectives do not exist yet: they may
// still go on beside computation.
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
