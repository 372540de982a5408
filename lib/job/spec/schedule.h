// The learning rate of each step.
#pragma once
#include <cstdint>

#include "job/spec/job_spec.h"

namespace fleetrun::job {

// The rate of step `step`, which counts from 0 over all epochs, of a training of `total_steps`.
//   warm-up     (step + 1) / warmup_steps of the rate that follows it, which step warmup_steps then has in full
//   constant    base
//   piecewise   values[k], k = boundaries that are reached; a boundary in epochs is reached at its first step
//   cosine      end + (base - end) * (1 + cos(pi * t)) / 2
//   polynomial  base + (end - base) * t
// where t is the part of the steps after the warm-up that is done: 0 at first, 1 after the last step.
// `place`: as many steps lead to this place of its epoch, with as many ranks as there are now. That is `step`, too, unless a
// training whose length is given in steps went on with more ranks or fewer.
struct ScheduleTime {
  std::int64_t step = 0;
  std::int64_t place = 0;
};
double learning_rate_at(const ScheduleSpec& schedule, const ScheduleTime& now, std::int64_t steps_per_epoch,
                        std::int64_t total_steps);

}  // namespace fleetrun::job
