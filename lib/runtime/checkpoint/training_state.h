// Where a training stands, beside its tensors.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/data/split_facts.h"
#include "runtime/observe/scored_epoch.h"

namespace fleetrun::runtime {

// Gradients that strategy.gradient_merge has added up since the last update.
struct MergedGradients {
  int batches = 0;      // of each rank
  int k_steps = 1;      // batches from update to update; 1 without strategy.gradient_merge
  std::string scaling;  // by what each gradient is multiplied: "loss scale 1024, One"

  bool operator==(const MergedGradients&) const = default;
};

// Steps and batches are those of each rank. Schedules, the order of the samples, augmentation and dropout are functions
// of these numbers and of the job, so there is no other random state.
struct TrainingState {
  std::int64_t steps = 0;  // done, over all epochs
  int epoch = 0;           // under way
  int batch = 0;           // batches of that epoch that are done
  int world_size = 1;
  int batch_size = 1;  // of a rank, the largest one
  std::int64_t seed = 1;
  std::string model;      // "resnet50"
  std::string optimizer;  // "momentum"
  int samples = 0;        // of data.train; 0: not known
  // Batch k of the epoch under way begins at sample k * samples_in_step + shift of the epoch's order. Not 0 when the
  // samples in a step have changed within the epoch.
  std::int64_t shift = 0;
  int global_batch = 0;  // train.global_batch; 0: every rank has batch_size
  MergedGradients merged = {};
  // The factors of one update by which old values count in optimizer states and averages: "beta1", "beta2", "ema_decay". Older
  // checkpoints have none.
  std::map<std::string, double> decays = {};
  // What else the order of the samples depends on; older checkpoints do not say.
  std::optional<bool> shuffle = {};
  std::optional<job::Uneven> uneven = {};
  std::optional<job::Sampler> sampler = {};
  std::optional<SplitFacts> split = {};  // which samples are set aside; older checkpoints do not say
  // On rank 0.
  std::optional<ScoredEpoch> best = {};  // of checkpoint.keep_best
  Improvement improvement = {};          // of train.early_stopping

  bool operator==(const TrainingState&) const = default;
};

// Of all ranks.
std::int64_t samples_in_step(const TrainingState& state);

// Samples of the whole training up to this place, in the numbering of epochs: it grows along a training, whatever the number of
// ranks.
std::int64_t place_in_training(const TrainingState& state);

// Where a training of `now` (world size, batch size or global batch) goes on from `saved`, when an epoch has `batches` batches now.
// With another number of samples in a step the rest of the epoch is dealt anew: no sample is trained twice, and none is left
// out but the last ones that do not fill a step (Uneven::drop). The steps of a training whose length is given in steps stay
// those that were done; where it is given in epochs, they are those that lead to this place now, and so schedules go on where
// they were.
enum class Length { steps, epochs };
TrainingState plan_resume(const TrainingState& saved, const TrainingState& now, int batches, Length length,
                          job::Uneven uneven);

// Why a training of `now` cannot add to the merged gradients of `saved`: "k_steps is 2 and was 3", or "" if it can. It can if all that
// their sum depends on is the same. Otherwise the next update would be of the wrong size.
std::string difference_of_merging(const TrainingState& saved, const TrainingState& now);

// Lines about what deals the samples of the epoch under way differently than before.
std::vector<std::string> differences_of_order(const TrainingState& saved, const TrainingState& now);

// "epoch 3, batch 20 (step 1193)"
std::string describe(const TrainingState& state);

}  // namespace fleetrun::runtime
