// Schedules that count steps do not go on where they were after a resume with other ranks.
#pragma once
#include <string>

#include "job/spec/job_spec.h"
#include "runtime/checkpoint/training_state.h"

namespace fleetrun::runtime {

// A warning with the learning rates before and after the resume, if a warm-up or boundaries in steps make them differ because the steps of the
// checkpoint have another number now (plan_resume). "": they do not. `point`: where the training goes on, with `batches` in an epoch.
std::string difference_of_rate(const job::JobSpec& job, const TrainingState& saved,
                               const TrainingState& point, int batches);

}  // namespace fleetrun::runtime
