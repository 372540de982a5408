// The weights that an evaluation scores, which are those that the files for users keep.
#pragma once
#include "runtime/checkpoint/weights.h"
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// The moving averages with optimizer.ema_evaluate, and the mean of the ranks with localsgd. Every rank calls it, since each may keep
// some of the weights; rank 0 gets them. Outside of an evaluation.
PlainTensors collect_scored_weights(Run& run);

}  // namespace fleetrun::runtime
