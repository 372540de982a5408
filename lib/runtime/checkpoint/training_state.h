// Where a training stands, beside its tensors.
#pragma once
#include <cstdint>
#include <string>

namespace fleetrun::runtime {

// Steps and batches are those of each rank. Schedules, the order of the samples, augmentation and dropout are functions
// of these numbers and of the job, so there is no other random state.
struct TrainingState {
  std::int64_t steps = 0;  // done, over all epochs
  int epoch = 0;           // under way
  int batch = 0;           // batches of that epoch that are done
  int world_size = 1;
  int batch_size = 1;  // of a rank
  std::int64_t seed = 1;
  std::string model;      // "resnet50"
  std::string optimizer;  // "momentum"

  bool operator==(const TrainingState&) const = default;
};

// Where a training of `now` (world size, batch size) goes on from `saved`, when an epoch has `batches` batches now.
// With another number of samples in a step the place in the epoch is rounded down to a whole step, so that samples are
// trained twice rather than never.
struct ResumePoint {
  TrainingState state;
  std::int64_t repeated = 0;  // samples of the epoch that are trained twice
};
ResumePoint plan_resume(const TrainingState& saved, const TrainingState& now, int batches);

// "epoch 3, batch 20 (step 1193)"
std::string describe(const TrainingState& state);

}  // namespace fleetrun::runtime
