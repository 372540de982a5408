// What follows from the scores of evaluations: checkpoint.keep_best and train.early_stopping.
#pragma once
#include "job/read/draft.h"

namespace fleetrun::job {

// Reports a job that asks for a score which no evaluation gives.
void check_evaluation(Draft& draft);

}  // namespace fleetrun::job
