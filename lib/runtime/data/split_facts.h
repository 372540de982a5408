// Which samples a training sets aside with data.split, as checkpoints and model files keep it. A model is only worth evaluating on samples
// that its training has set aside.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/json/json_value.h"
#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

struct SplitFacts {
  double share = 0;             // data.split; 0: the training has none, and what follows is not set
  std::int64_t seed = 0;        // train.seed, which draws the samples
  std::int64_t train = 0;       // samples to train on
  std::int64_t evaluation = 0;  // samples set aside; 0: not known
  std::string digest;           // of the files and labels of both

  bool operator==(const SplitFacts&) const = default;
};

// The digest has the path of each file below the folder that all files share, and its label. It is the same wherever that folder is.
SplitFacts make_split_facts(double share, std::int64_t seed, const DataSet& train, const DataSet& evaluation);

JsonValue as_json(const SplitFacts& facts);
// None unless as_json() wrote this value.
std::optional<SplitFacts> read_split_facts(const JsonValue& json);

// The first difference between the splits, as words after "was trained": "with train.seed 1, the job has 5". Empty if they are equal.
// `now` has a share.
std::string difference_of(const SplitFacts& was, const SplitFacts& now);

// The keys of a job that would draw the samples as `was` did: "data.split=0.1 train.seed=1"; "": those of `now` are the same.
std::string keys_that_differ(const SplitFacts& was, const SplitFacts& now);

}  // namespace fleetrun::runtime
