// Which epoch had the best score, and whether later ones still get better. Plain state that a checkpoint keeps.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json/json_value.h"
#include "job/spec/job_spec.h"
#include "runtime/observe/score.h"

namespace fleetrun::runtime {

constexpr const char* kScoreKey = "score";  // of the epoch in the metadata of a file with its weights

// One score of an evaluation.
struct ScoredEpoch {
  job::Metric metric = job::Metric::loss;
  double value = 0;
  int epoch = 0;           // as the lines of the log count: from 0
  std::int64_t steps = 0;  // done before the evaluation, as the ranks of that time count them
  std::string data_set;    // digest of the samples that gave the score; "": not known
  std::int64_t place = 0;  // samples of the training before the evaluation (place_in_training); 0: not known

  bool operator==(const ScoredEpoch&) const = default;
};

// Scores of other samples say nothing about each other.
bool are_of_same_data(const ScoredEpoch& one, const ScoredEpoch& other);

std::string_view name_of(job::Metric metric);  // "acc1"
double value_of(job::Metric metric, const Score& score);

// By more than `min_delta`. A lower loss is better, and a higher accuracy. NaN and infinity are never better. Both have the
// same metric. `than` none: every finite value is better.
bool is_better(const ScoredEpoch& epoch, const std::optional<ScoredEpoch>& than, double min_delta = 0);

JsonValue as_json(const ScoredEpoch& epoch);
// None for what as_json() did not make.
std::optional<ScoredEpoch> read_scored_epoch(const JsonValue& json);

// "acc1 0.93750"
std::string describe(const ScoredEpoch& epoch);

// The evaluations of a training with train.early_stopping, as Keras's EarlyStopping and Lightning's count them.
struct Improvement {
  std::optional<ScoredEpoch> best;  // the last one that was an improvement
  int evaluations = 0;              // since then
  int epoch = 0;                    // of the last evaluation
  std::int64_t steps = -1;          // before the last evaluation; -1: there was none
  std::int64_t place = 0;           // of the last evaluation (ScoredEpoch::place); 0: not known

  bool operator==(const Improvement&) const = default;
};

// Counts the evaluation. One at the same place as the last is a repetition, and does not count.
void count(Improvement& so_far, const ScoredEpoch& now, double min_delta);

bool has_ended(const Improvement& so_far, const job::EarlyStoppingSpec& stopping);

// "stopped after epoch 7: loss did not improve by 0.01 in 3 evaluations; best epoch 4"
std::string describe(const Improvement& so_far, const job::EarlyStoppingSpec& stopping);

}  // namespace fleetrun::runtime
