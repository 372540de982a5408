// When average_parameters is due, the same on every device.
#pragma once
#include <cstdint>

namespace fleetrun::runtime::ops {

// The op's attributes.
struct AverageSteps {
  std::int64_t begin, k;
};

// localsgd. Steps count from 1.
bool is_average_due(std::int64_t step, const AverageSteps& steps);

// adaptive_localsgd: the op's input schedule, as it lies in memory.
struct AverageSchedule {
  float steps, since, first_rate, first_loss;

  // Counts this step.
  bool is_due(std::int64_t step, const AverageSteps& at_first);

  // After an average: `loss` is the mean over the ranks.
  void follow(float loss, float rate, const AverageSteps& at_first);
};

}  // namespace fleetrun::runtime::ops
