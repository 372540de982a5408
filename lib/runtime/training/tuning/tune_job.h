// Finds the fastest settings of a job on these ranks, or takes the ones that an earlier start on this host has found.
#pragma once
#include <cstdint>
#include <iosfwd>

#include "base/run/tune_request.h"
#include "runtime/training/tuning/step_timer.h"
#include "runtime/tune/tuned.h"

namespace fleetrun::runtime {

struct TuneOutcome {
  Tuned tuned;
  bool kept = false;             // from an earlier start: nothing was measured
  std::int64_t timed_steps = 0;  // of this rank
  job::JobSpec job;              // with the settings of the winner
};

// Every rank calls it and gets the same outcome. Rank 0 prints progress to `out`, and keeps the result on its host.
// Throws Error(config) on a device that is not the CPU, and the errors of a training.
TuneOutcome tune_job(const TuningRank& rank, const TuneRequest& request, std::ostream& out);

// strategy.auto: the job with the settings that tune_job() finds in a minute. Rank 0 prints which these are.
job::JobSpec auto_tuned_job(const TuningRank& rank, std::ostream& out);

}  // namespace fleetrun::runtime
