// The profile of some steps (train.profile), on rank 0.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// Call it after each step: takes the profile's marks where the profiled steps begin and end.
void profile_step(Run& run);

// Prints the profile. It runs ops alone to time them, so call it at the end, when no other rank waits for this one.
void print_profile(Run& run);

}  // namespace fleetrun::runtime
