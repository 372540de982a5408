// Scores that say nothing about a training, as far as the data set shows it: job/checks sees the number of classes only if the job has it.
#pragma once
#include "job/spec/job_spec.h"

namespace fleetrun::runtime {

// Throws Error(config) for checkpoint.keep_best or train.early_stopping with acc5, if all of the model's classes are among the best five.
void check_metrics(const job::JobSpec& job, int classes);

}  // namespace fleetrun::runtime
