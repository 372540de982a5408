// How strategy.pipeline divides a batch.
#pragma once
#include "job/job_spec.h"

namespace fleetrun::job {

struct MicroBatches {
  int size = 1;   // samples of each
  int count = 1;  // of a batch

  bool operator==(const MicroBatches&) const = default;
};

// As pipeline_configs says. Without its numbers: the fewest micro-batches, but at least four per stage, because then the stages
// wait for each other less than a fifth of the time (Huang et al. 2019, arXiv:1811.06965).
MicroBatches micro_batches_of(const JobSpec& job, int stages);

// How many ranks train different samples: the ranks of a pipeline train the same ones.
int replicas_of(const JobSpec& job, int ranks);

}  // namespace fleetrun::job
