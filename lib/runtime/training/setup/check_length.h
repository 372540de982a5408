// What a job wants of a training whose number of steps is known only when the data and the ranks are: one of train.epochs epochs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/checkpoint/training_state.h"

namespace fleetrun::runtime {

// Lines about steps that update nothing and about a warm-up that does not end. `state`: where the training starts. The keys of a training
// of train.max_steps steps are checked when the job is parsed.
// Throws Error(config) if no update of strategy.gradient_merge would come before the end.
std::vector<std::string> check_length(const job::JobSpec& job, const TrainingState& state,
                                      std::int64_t total_steps);

}  // namespace fleetrun::runtime
