// One evaluation of the model on data.test, by all ranks together.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// Prints and records the score of data.test after epoch number `epoch`. A request to stop ends it early
// (progress.stopped). Throws Error(numerics) when neither the loss nor the weights are finite.
void evaluate(Run& run, int epoch);

}  // namespace fleetrun::runtime
