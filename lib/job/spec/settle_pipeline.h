// How strategy.pipeline divides a batch.
#pragma once
#include "job/spec/job_spec.h"

namespace fleetrun::job {

struct MicroBatches {
  int size = 1;   // samples of each
  int count = 1;  // of a batch

  bool operator==(const MicroBatches&) const = default;
};

// As pipeline_configs says. Without its numbers: the fewest micro-batches, but at least four per stage, because then the stages
// wait for each other less than a fifth of the time (Huang et al. 2019, arXiv:1811.06965).
MicroBatches micro_batches_of(const JobSpec& job, int stages);

// The stages of a pipeline; 1 without strategy.pipeline. Rank r has stage r % stages of replica r / stages.
int stages_of(const StrategySpec& strategy, int ranks);

// Into how many parts the samples of a step are divided: the stages of one pipeline train the same samples.
int replicas_of(const JobSpec& job, int ranks);

}  // namespace fleetrun::job
