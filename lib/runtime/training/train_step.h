// One step of the training, with what is fetched, printed and recorded after it.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// `ends_run`: whether results may be fetched after this step (num_iteration_per_run).
// Throws Error(numerics) when the fetched loss is NaN or infinite, Error(diverged) when the ranks' weights differ.
void train_step(Run& run, const Batch& batch, bool ends_run);

}  // namespace fleetrun::runtime
