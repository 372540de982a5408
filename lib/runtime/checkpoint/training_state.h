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
  int samples = 0;        // of data.train; 0: not known

  bool operator==(const TrainingState&) const = default;
};

// Where a training of `now` (world size, batch size) goes on from `saved`, when an epoch has `batches` batches now.
// With another number of samples in a step the place in the epoch is rounded down to a whole step, so that samples are
// trained twice rather than never. The steps of a training whose length is given in steps stay those that were done; where it
// is given in epochs, they are those that lead to this place now, and so schedules go on where they were.
enum class Length { steps, epochs };
struct ResumePoint {
  TrainingState state;
  std::int64_t repeated = 0;  // samples of the epoch that are trained twice
};
ResumePoint plan_resume(const TrainingState& saved, const TrainingState& now, int batches, Length length);

// "epoch 3, batch 20 (step 1193)"
std::string describe(const TrainingState& state);

}  // namespace fleetrun::runtime
