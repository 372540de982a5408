// What follows from several keys together: contradictions between them, and defaults that hang on other keys.
#pragma once
#include "job/keys/key.h"
#include "job/read/draft.h"

namespace fleetrun::job {

// train.epochs when neither it nor max_steps is given; channels, mean and std of the data sets.
void complete_spec(Draft& draft);

// Adds what cannot be at the same time to the problems of a completed spec. Keys that are wrong by themselves
// are left out.
void find_contradictions(Draft& draft);

// A note for each NAME_configs that the job sets while its switch NAME is off.
void note_settings_without_switch(const Key& keys, Draft& draft);

}  // namespace fleetrun::job
