// Writes the programs that the runtime made from a job, for the user to read: fleetrun --dump_program DIR.
#pragma once
#include <string>

#include "runtime/compile/pipeline.h"
#include "runtime/training/trainer/trainer.h"

namespace fleetrun::runtime {

// Writes to `folder`, for the training ("train") and the evaluation ("eval") program:
//   train.txt            the program with layouts: a line for each value and op
//   train.dot            the same as a picture for Graphviz
//   train.kernels.txt    the implementation that runs each op
// Throws Error(create|io).
void dump_programs(const std::string& folder, const Trainer& trainer);

// A watcher that writes the training program to numbered files in `folder`, as built and after each pass: 00-built.txt
// and .dot, 01-insert_all_reduce.txt, ... (fleetrun --dump_passes DIR). Removes such files of an earlier run.
// Throws Error(create|io).
PassWatcher dump_passes(const std::string& folder);

}  // namespace fleetrun::runtime
