// How many samples of a step each rank trains.
#pragma once
#include <cstdint>

#include "job/spec/job_spec.h"

namespace fleetrun::job {

// The samples of one rank in a step.
struct StepShare {
  std::int64_t first = 0;  // how many samples of the step are those of ranks before it
  int count = 0;
};

// Shares differ by at most one sample: the first ranks have one more when the ranks do not divide the samples.
struct StepShares {
  std::int64_t samples = 1;  // of all ranks
  int ranks = 1;

  StepShare of(int rank) const;
  int largest() const { return of(0).count; }
  int smallest() const { return of(ranks - 1).count; }
  bool are_equal() const { return largest() == smallest(); }
};

// train.global_batch samples in all, or data.batch_size on each rank. The stages of a pipeline count as one rank. Throws Error(config)
// for fewer samples than ranks.
StepShares plan_shares(const JobSpec& job, int all_ranks);

}  // namespace fleetrun::job
