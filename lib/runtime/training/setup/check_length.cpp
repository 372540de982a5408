#include "runtime/training/setup/check_length.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kMergeSteps = "strategy.gradient_merge_configs.k_steps";

// At the end of the training.
std::int64_t steps_without_update(const TrainingState& state, std::int64_t total_steps) {
  return (state.merged.batches + total_steps - state.steps) % state.merged.k_steps;
}

std::string length_of(const job::JobSpec& job, std::int64_t total_steps) {
  return fmt::format("{} in {}", plural(total_steps, "step"), plural(*job.train.epochs, "epoch"));
}

}  // namespace

std::vector<std::string> check_length(const job::JobSpec& job, const TrainingState& state,
                                      std::int64_t total_steps) {
  if (!job.train.epochs || state.steps >= total_steps) return {};
  const int k_steps = state.merged.k_steps;
  if (state.steps == 0 && k_steps > total_steps)
    throw Error(ErrorKind::config,
                fmt::format("{} is {}, but the training has only {}, so no step updates the parameters",
                            kMergeSteps, k_steps, length_of(job, total_steps)));
  std::vector<std::string> lines;
  if (const std::int64_t useless = steps_without_update(state, total_steps); useless > 0)
    lines.push_back(fmt::format("{} is {}: {} at the end of the training {} nothing", kMergeSteps, k_steps,
                                plural(useless, "step"), useless == 1 ? "updates" : "update"));
  const int warmup = job.optimizer.learning_rate.warmup_steps;
  if (warmup >= total_steps)
    lines.push_back(fmt::format(
        "warning: optimizer.learning_rate.warmup_steps is {}, but the training has only {}: the warm-up does not end",
        warmup, length_of(job, total_steps)));
  return lines;
}

}  // namespace fleetrun::runtime
