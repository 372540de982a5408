// The training loop.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// Trains from run.progress to the end of the training, or until SIGTERM makes it save a checkpoint and stop
// (progress.stopped). Evaluates after epochs, and saves checkpoints after steps and epochs, as the job says.
// Throws Error: data, io, temporary (a peer was lost), numerics (loss is NaN), diverged.
void train(Run& run);

}  // namespace fleetrun::runtime
