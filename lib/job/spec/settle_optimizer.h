// The optimizer that a job trains with: strategy.lars makes LARS of momentum, strategy.lamb makes LAMB of adam.
#pragma once
#include "job/spec/job_spec.h"

namespace fleetrun::job {

// For LARS, `epsilon` is the one of lars_configs (0 for optimizer.name lars), not Adam's.
OptimizerSpec settle_optimizer(const JobSpec& job);

}  // namespace fleetrun::job
