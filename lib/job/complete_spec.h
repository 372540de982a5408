// What follows from several keys together: contradictions between them, and defaults that hang on other keys.
#pragma once
#include "job/draft.h"

namespace fleetrun::job {

// train.epochs when neither it nor max_steps is given; channels, mean and std of the data sets.
void complete_spec(Draft& draft);

// Adds what cannot be at the same time to the problems of a completed spec. Keys that are wrong by themselves
// are left out.
void find_contradictions(Draft& draft);

}  // namespace fleetrun::job
