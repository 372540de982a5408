// What a model predicts for a data set, and how good these predictions are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/observe/score.h"

namespace fleetrun::runtime {

// For one sample. Classes are counted from 0.
struct Prediction {
  std::int32_t sample = 0;  // its number in the data set
  std::int32_t label = 0;
  std::int32_t predicted = 0;  // the class with the highest score
  float loss = 0;              // -log of the probability of the label
  float probability = 0;       // of the predicted class
};

// The usual definitions, with 0 in place of 0 / 0, as in scikit-learn's classification_report:
//   precision = hits / predicted      recall = hits / images      f1 = 2 * precision * recall / (precision + recall)
struct Quality {
  double precision = 0, recall = 0, f1 = 0;
};

struct ClassQuality {
  std::int32_t label = 0;
  Quality quality;
  std::int64_t images = 0;     // with this label: the "support"
  std::int64_t predicted = 0;  // predictions of this class
};

// Images by (label, predicted class), without the pairs that have none.
using Confusion = std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>;

// What was evaluated, as the user knows it.
struct EvalSubject {
  std::string model, data;
  std::vector<std::string> classes;  // their names, by label
  std::int64_t skipped = 0;          // samples that could not be read (data.bad_sample)
};

struct EvalReport {
  EvalSubject subject;
  Score score;
  std::vector<ClassQuality>
      by_class;           // by label, without the classes that have neither images nor predictions
  Quality macro_mean;     // over `by_class`
  Quality weighted_mean;  // the same, weighted by the number of images
  Confusion confusion;
  std::vector<Prediction> predictions;  // by sample
  std::vector<std::string> names;       // of their images
  std::vector<std::size_t> worst;       // places in `predictions`, the highest loss first
};

// `predictions` are sorted by sample; `names` has one for each.
EvalReport make_report(EvalSubject subject, const Score& score, std::vector<Prediction> predictions,
                       std::vector<std::string> names);

Confusion count_confusion(const std::vector<Prediction>& predictions);

// `classes`: how many classes the model has.
std::vector<ClassQuality> judge_classes(const Confusion& confusion, std::int32_t classes);

Quality macro_mean(const std::vector<ClassQuality>& classes);
Quality weighted_mean(const std::vector<ClassQuality>& classes);

// The places of the `count` predictions with the highest losses. Of equal losses the first one comes first.
std::vector<std::size_t> find_worst(const std::vector<Prediction>& predictions, std::size_t count);

// "3", where the data set has no names of its classes.
std::vector<std::string> numbered_classes(std::int32_t classes);

}  // namespace fleetrun::runtime
