#include "runtime/passes/sequential_execution.h"

namespace fleetrun::runtime {

void sequential_execution(Program& program, const PassContext&) {
  for (std::size_t i = 1; i < program.ops.size(); ++i)
    for (const ValueId before : program.ops[i - 1].outputs)
      if (before != kNone) program.ops[i].after.push_back(before);
}

}  // namespace fleetrun::runtime
