#include "runtime/checkpoint/training_state.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime {

ResumePoint plan_resume(const TrainingState& saved, const TrainingState& now, int batches, Length length) {
  const std::int64_t then_in_step = std::int64_t{saved.world_size} * saved.batch_size;
  const std::int64_t now_in_step = std::int64_t{now.world_size} * now.batch_size;
  const std::int64_t samples = saved.batch * then_in_step;
  ResumePoint point = {.state = now};
  point.state.epoch = saved.epoch;
  point.state.batch = static_cast<int>(std::min<std::int64_t>(batches, samples / now_in_step));
  point.state.steps =
      length == Length::steps ? saved.steps : std::int64_t{saved.epoch} * batches + point.state.batch;
  point.repeated = samples - point.state.batch * now_in_step;
  if (point.state.batch == batches) point.repeated = 0;
  return point;
}

std::string describe(const TrainingState& state) {
  return fmt::format("epoch {}, batch {} (step {})", state.epoch, state.batch, state.steps);
}

}  // namespace fleetrun::runtime
