#include "job/spec/step_share.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "job/spec/settle_pipeline.h"

namespace fleetrun::job {

StepShare StepShares::of(int rank) const {
  const std::int64_t least = samples / ranks, larger = samples % ranks;
  return {.first = rank * least + std::min<std::int64_t>(rank, larger),
          .count = static_cast<int>(least + (rank < larger ? 1 : 0))};
}

StepShares plan_shares(const JobSpec& job, int all_ranks) {
  const int ranks = replicas_of(job, all_ranks);
  const std::optional<int>& samples = job.train.global_batch;
  if (!samples) return {.samples = std::int64_t{job.data.batch_size} * ranks, .ranks = ranks};
  if (*samples < ranks)
    throw Error(
        ErrorKind::config,
        fmt::format("train.global_batch is {}, wanted at least {}: each of the {} ranks needs a sample in "
                    "every step",
                    *samples, ranks, ranks),
        "raise train.global_batch, or start fewer ranks");
  return {.samples = *samples, .ranks = ranks};
}

}  // namespace fleetrun::job
