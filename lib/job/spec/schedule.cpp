#include "job/spec/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fleetrun::job {
namespace {

double piecewise_rate(const ScheduleSpec& schedule, const ScheduleTime& now, std::int64_t steps_per_epoch) {
  const bool by_epoch = schedule.unit == ScheduleUnit::epoch;
  const std::int64_t unit = by_epoch ? steps_per_epoch : 1, at = by_epoch ? now.place : now.step;
  std::size_t reached = 0;
  while (reached < schedule.boundaries.size() && at >= schedule.boundaries[reached] * unit) ++reached;
  return schedule.values[reached];
}

// 0 at the first step after the warm-up, 1 after the last step.
double part_done(const ScheduleSpec& schedule, std::int64_t step, std::int64_t total_steps) {
  const std::int64_t steps = total_steps - schedule.warmup_steps;
  if (steps <= 0) return 0;
  return std::clamp(static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(steps), 0.0, 1.0);
}

double rate_after_warmup(const ScheduleSpec& schedule, const ScheduleTime& now, std::int64_t steps_per_epoch,
                         std::int64_t total_steps) {
  const double done = part_done(schedule, now.step, total_steps);
  switch (schedule.name) {
    case ScheduleName::constant:
      break;
    case ScheduleName::piecewise:
      return piecewise_rate(schedule, now, steps_per_epoch);
    case ScheduleName::cosine:
      return schedule.end + (schedule.base - schedule.end) * (1 + std::cos(std::numbers::pi * done)) / 2;
    case ScheduleName::polynomial:
      return schedule.base + (schedule.end - schedule.base) * done;
  }
  return schedule.base;
}

}  // namespace

double learning_rate_at(const ScheduleSpec& schedule, const ScheduleTime& now, std::int64_t steps_per_epoch,
                        std::int64_t total_steps) {
  const std::int64_t warmup = schedule.warmup_steps;
  if (now.step >= warmup) return rate_after_warmup(schedule, now, steps_per_epoch, total_steps);
  const double grown = static_cast<double>(now.step + 1) / static_cast<double>(warmup);
  return grown * rate_after_warmup(schedule, {warmup, warmup}, steps_per_epoch, total_steps);
}

}  // namespace fleetrun::job
