// The end of a training: waits for the last checkpoint, saves the weights, and makes the report.
#pragma once
#include "runtime/observe/train_report.h"
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// Call it after train(). Rank 0 saves the weights. After a stop, no weights are saved and no rank waits for another,
// because each may end at any time. Throws Error: create, io, numerics, temporary.
TrainReport finish(Run& run);

}  // namespace fleetrun::runtime
