#include "runtime/checkpoint/training_state.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime {

namespace {

// Steps that this many samples make.
std::int64_t steps_for(std::int64_t samples, std::int64_t in_step, job::Uneven uneven) {
  if (samples <= 0) return 0;
  return uneven == job::Uneven::drop ? samples / in_step : (samples + in_step - 1) / in_step;
}

// Samples of the epoch that are done.
std::int64_t samples_done(const TrainingState& state) {
  return state.batch * samples_in_step(state) + state.shift;
}

bool had_ended_its_epoch(const TrainingState& saved, const TrainingState& now, job::Uneven uneven) {
  const std::int64_t samples = saved.samples > 0 ? saved.samples : now.samples;
  return steps_for(samples - samples_done(saved), samples_in_step(saved), uneven) == 0;
}

}  // namespace

std::int64_t samples_in_step(const TrainingState& state) {
  return state.global_batch > 0 ? state.global_batch : std::int64_t{state.world_size} * state.batch_size;
}

std::int64_t place_in_training(const TrainingState& state) {
  const std::int64_t of_epoch =
      std::min<std::int64_t>(samples_done(state), state.samples);  // without padding
  return std::int64_t{state.epoch} * state.samples + of_epoch;
}

TrainingState plan_resume(const TrainingState& saved, const TrainingState& now, int batches, Length length,
                          job::Uneven uneven) {
  const std::int64_t in_step = samples_in_step(now), done = samples_done(saved);
  std::int64_t left = steps_for(now.samples - done, in_step, uneven);
  if (had_ended_its_epoch(saved, now, uneven)) left = 0;
  TrainingState state = now;
  state.epoch = saved.epoch;
  state.merged.batches = saved.merged.batches;
  state.best = saved.best;
  state.improvement = saved.improvement;
  state.batch = static_cast<int>(std::max<std::int64_t>(0, batches - left));
  state.shift = left == 0 ? 0 : done - state.batch * in_step;
  state.steps = length == Length::steps ? saved.steps : std::int64_t{saved.epoch} * batches + state.batch;
  return state;
}

std::string difference_of_merging(const TrainingState& saved, const TrainingState& now) {
  std::string difference;
  const auto compare = [&](const char* what, const auto& was, const auto& is) {
    if (is != was)
      difference += fmt::format("{}{} is {} and was {}", difference.empty() ? "" : ", ", what, is, was);
  };
  compare("k_steps", saved.merged.k_steps, now.merged.k_steps);
  compare("the number of ranks", saved.world_size, now.world_size);
  compare("data.batch_size", saved.batch_size, now.batch_size);
  compare("train.global_batch", saved.global_batch, now.global_batch);
  const auto quoted = [](const std::string& text) { return '"' + text + '"'; };
  compare("the scaling of gradients", quoted(saved.merged.scaling), quoted(now.merged.scaling));
  return difference;
}

std::vector<std::string> differences_of_order(const TrainingState& saved, const TrainingState& now) {
  std::vector<std::string> lines;
  if (saved.batch == 0) return lines;
  const auto compare = [&](const char* key, const auto& was, const auto& is, const char* effect) {
    if (was != is)
      lines.push_back(fmt::format(
          "warning: {} is {}, and was {} when the checkpoint was written: the rest of its epoch {}", key, is,
          was, effect));
  };
  const auto name = [](job::Uneven uneven) { return uneven == job::Uneven::pad ? "pad" : "drop"; };
  const char* const reorders = "is drawn from another order";
  const bool shuffle = now.shuffle.value_or(true), shuffled = saved.shuffle.value_or(shuffle);
  compare("data.shuffle", shuffled, shuffle, reorders);
  if (shuffle && shuffled) compare("train.seed", saved.seed, now.seed, reorders);
  const auto sampler_name = [](std::optional<job::Sampler> sampler) {
    return sampler == job::Sampler::balanced ? "balanced" : "all";
  };
  const std::string sampled = sampler_name(saved.sampler), samples = sampler_name(now.sampler);
  compare("data.sampler", sampled, samples, reorders);
  if (saved.uneven && now.uneven) {
    const std::string was = name(*saved.uneven), is = name(*now.uneven);
    compare("data.uneven", was, is, "ends as the new value says");
  }
  return lines;
}

std::string describe(const TrainingState& state) {
  return fmt::format("epoch {}, batch {} (step {})", state.epoch, state.batch, state.steps);
}

}  // namespace fleetrun::runtime
