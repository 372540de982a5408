#include "runtime/training/save/rate_after_resume.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "job/spec/schedule.h"
#include "runtime/data/order/sampler.h"

namespace fleetrun::runtime {
namespace {

constexpr double kSameRate = 0.01;  // a place between two steps makes as much

bool counts_steps(const job::ScheduleSpec& schedule) {
  return schedule.warmup_steps > 0 ||
         (schedule.name == job::ScheduleName::piecewise && schedule.unit == job::ScheduleUnit::step);
}

double rate_of(const job::JobSpec& job, const TrainingState& state, std::int64_t batches) {
  const std::int64_t place = state.epoch * batches + state.batch;
  return job::learning_rate_at(job.optimizer.learning_rate, {state.steps, place}, batches,
                               *job.train.epochs * batches);
}

}  // namespace

std::string difference_of_rate(const job::JobSpec& job, const TrainingState& saved,
                               const TrainingState& point, int batches) {
  if (!job.train.epochs || saved.samples == 0 || saved.steps == point.steps ||
      !counts_steps(job.optimizer.learning_rate))
    return "";
  const int saved_batches = batches_per_epoch({.samples = saved.samples,
                                               .batch = saved.batch_size,
                                               .world = saved.world_size,
                                               .uneven = saved.uneven.value_or(job.data.uneven),
                                               .global_batch = saved.global_batch});
  const double was = rate_of(job, saved, saved_batches), is = rate_of(job, point, batches);
  if (std::abs(is - was) <= kSameRate * was) return "";
  return fmt::format(
      "warning: the learning rate goes on with {:.4g} instead of {:.4g}: optimizer.learning_rate counts steps, and the {} of the checkpoint "
      "count as {} now",
      is, was, plural(saved.steps, "step"), point.steps);
}

}  // namespace fleetrun::runtime
