#include "runtime/ops/rules/average_schedule.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::runtime::ops {
namespace {

constexpr float kMostSteps = 16;  // PaddlePaddle's limit (localsgd_optimizer.py)

}  // namespace

bool is_average_due(std::int64_t step, const AverageSteps& steps) {
  return step <= steps.begin || (step - steps.begin) % steps.k == 0;
}

bool AverageSchedule::is_due(std::int64_t step, const AverageSteps& at_first) {
  since += 1;
  const float wanted = steps == 0 ? static_cast<float>(at_first.k) : steps;
  return step <= at_first.begin || since >= wanted;
}

void AverageSchedule::follow(float loss, float rate, const AverageSteps& at_first) {
  since = 0;
  if (first_loss == 0) {
    first_loss = loss;
    first_rate = rate;
  }
  const double ratio = static_cast<double>(first_rate) * static_cast<double>(loss) /
                       (static_cast<double>(rate) * static_cast<double>(first_loss));
  const double wanted = std::ceil(std::sqrt(ratio * static_cast<double>(at_first.k)));
  steps = wanted <= static_cast<double>(kMostSteps) ? std::max(1.0F, static_cast<float>(wanted))
                                                    : kMostSteps;  // NaN: the most
}

}  // namespace fleetrun::runtime::ops
