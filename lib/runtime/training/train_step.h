// Does one step of the training, then fetches, prints and records its results when they are due.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// `group_ends`: whether this step is the last of num_iteration_per_run steps, after which results may be fetched.
// Throws Error(numerics) when the fetched loss is NaN or infinite, Error(diverged) when the ranks' weights differ.
void train_step(Run& run, const Batch& batch, bool group_ends);

// At the end of a training, however it ends: the score of its last step, if it is not fetched yet. Stages of a pipeline that was stopped
// fetch nothing, because a rank may be gone. Throws Error(numerics) when the loss is NaN or infinite, unless the training was stopped, with a
// complete checkpoint.
void fetch_last_step(Run& run);

}  // namespace fleetrun::runtime
