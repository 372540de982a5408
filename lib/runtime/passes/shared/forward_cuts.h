// Where the forward part of a program hangs by one value: recompute keeps such values, and pipeline sends them.
#pragma once
#include <vector>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

struct Cut {
  OpId op;        // the last one before the cut
  ValueId value;  // the only activation that later ops of the forward part read
};

int count_forward_ops(const Program& program);  // those before the backward part

// In the order of the program.
std::vector<Cut> forward_cuts(const Program& program);

}  // namespace fleetrun::runtime
