// What the runtime made of a job, for people: fleetrun --dump_program DIR.
#pragma once
#include <string>

#include "runtime/trainer.h"

namespace fleetrun::runtime {

// Writes to `folder`, for the training ("train") and the evaluation ("eval") program:
//   train.txt            the program with layouts: a line for each value and op
//   train.dot            the same as a picture for Graphviz
//   train.kernels.txt    the implementation that runs each op
// Throws Error(create|io).
void dump_programs(const std::string& folder, const Trainer& trainer);

}  // namespace fleetrun::runtime
