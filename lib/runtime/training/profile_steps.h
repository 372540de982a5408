// The profile of some steps (train.profile), on rank 0.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// After each step: notes the sums of the profile where its steps begin and end.
void profile_step(Run& run);

// Prints the profile. Times ops by themselves, so it belongs to the end, when no other rank waits for this one.
void print_profile(Run& run);

}  // namespace fleetrun::runtime
