// Which sample a rank reads at which place of an epoch: a function of numbers, equal on every machine.
#pragma once
#include <cstdint>
#include <vector>

#include "job/spec/job_spec.h"
#include "job/spec/step_share.h"

namespace fleetrun::runtime {

constexpr std::int32_t kNoSample = -1;  // a place of an evaluation's last batches that no sample is left for

struct ShardSpec {
  int samples = 0;
  int batch = 1;  // of each rank, without a global batch
  int rank = 0;
  int world = 1;
  std::int64_t seed = 1;
  bool shuffle = true;
  job::Uneven uneven = job::Uneven::pad;
  bool evaluation = false;  // every sample once, in order, the rest of the last batches kNoSample
  const std::vector<std::int32_t>* labels = nullptr;  // of the samples, where each class comes equally often
  int global_batch = 0;                               // of all ranks together; 0: each rank has `batch`

  job::StepShares shares() const;
  int batch_of_rank() const { return shares().of(rank).count; }
  bool is_balanced() const { return labels != nullptr && shuffle && !evaluation; }
};

// Where an epoch begins.
struct EpochStart {
  int epoch = 0;
  int batch = 0;           // the first that is read
  std::int64_t shift = 0;  // of the places of all samples in the epoch's order: TrainingState::shift
};

// All samples, in the order of (seed, epoch).
std::vector<std::int32_t> shuffled_order(int samples, std::int64_t seed, int epoch);

// As many places as there are samples, equally many for each class that has samples: by one more or less, where the numbers do not
// divide. The samples of a class come equally often, in the same sense. Which classes and samples have one more follows (seed, epoch).
std::vector<std::int32_t> balanced_order(const std::vector<std::int32_t>& labels, std::int64_t seed,
                                         int epoch);

// The same for all ranks.
int batches_per_epoch(const ShardSpec& spec);

// This rank's samples, batch after batch: sample k*S + first + i + shift of the epoch's order is at position i of
// batch k, with S samples in a step and `first` of them for the ranks before this one (r*B, unless the global batch is not
// divisible by the ranks). Beyond the end stand random samples of the epoch (pad), or the last, incomplete round is
// left out (drop). Before the beginning, which only batches before `start.batch` can reach, stands kNoSample.
std::vector<std::int32_t> plan_epoch(const ShardSpec& spec, const EpochStart& start);

}  // namespace fleetrun::runtime
