// What follows from the score of an evaluation: the weights of the best epoch go to a file (checkpoint.keep_best), and a training that
// no longer gets better ends (train.early_stopping). Rank 0 decides, and tells the others. Every rank calls these functions.
#pragma once
#include "runtime/training/run.h"

namespace fleetrun::runtime {

// Before the first step, with the state of the checkpoint. Begins with the best weights of the checkpoint, and sets any other best.safetensors
// aside. Ends a training that early stopping had ended before. Throws Error(create|io), also when a file of the user is in the place of
// ours.
void begin_judging(Run& run);

// After an evaluation that was not interrupted. A failure to write the weights is a warning: the next better epoch gets another chance.
void judge_score(Run& run);

}  // namespace fleetrun::runtime
