// The end of a training: waits for the last checkpoint, saves the weights, and makes the report.
#pragma once
#include "runtime/observe/train_report.h"
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// After train(). Rank 0 saves the weights, unless the ranks were asked to stop: then each may end at any time, and none
// waits for another. Throws Error: create, io, numerics, temporary.
TrainReport finish(Run& run);

}  // namespace fleetrun::runtime
