#include "runtime/data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/order/sampler.h"

namespace fleetrun::runtime {
namespace {

constexpr int kEpochOfSplit = -1;  // an order of the samples that no epoch has

// Some samples of a data set. Crops follow the number that a sample has there.
class SubSet : public DataSet {
 public:
  SubSet(std::shared_ptr<const DataSet> whole, std::vector<std::int32_t> samples)
      : DataSet(facts_of(*whole, samples)), whole_(std::move(whole)), samples_(std::move(samples)) {}

  std::string describe(int sample) const override { return whole_->describe(number_of(sample)); }
  std::string source_of(int sample) const override { return whole_->source_of(number_of(sample)); }
  void read_stored(int sample, std::size_t limit, std::vector<std::uint8_t>& bytes) const override {
    whole_->read_stored(number_of(sample), limit, bytes);
  }
  void read(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes) const override {
    Framing in_whole = framing;
    in_whole.sample = number_of(framing.sample);
    whole_->read(in_whole, scratch, planes);
  }

 private:
  static DataSetFacts facts_of(const DataSet& whole, const std::vector<std::int32_t>& samples) {
    DataSetFacts facts = {
        .shape = whole.shape(), .classes = whole.classes(), .class_names = whole.class_names()};
    facts.labels.reserve(samples.size());
    for (const std::int32_t sample : samples) facts.labels.push_back(whole.label(sample));
    return facts;
  }
  std::int32_t number_of(int sample) const { return samples_.at(static_cast<std::size_t>(sample)); }

  const std::shared_ptr<const DataSet> whole_;
  const std::vector<std::int32_t> samples_;
};

}  // namespace

SplitSamples split_by_class(const std::vector<std::int32_t>& labels, double share, std::int64_t seed) {
  std::map<std::int32_t, int> of_class, wanted;
  for (const std::int32_t label : labels) ++of_class[label];
  for (const auto& [label, count] : of_class)
    wanted[label] = count < 2 ? 0 : std::clamp(static_cast<int>(std::lround(count * share)), 1, count - 1);
  SplitSamples split;
  for (const std::int32_t sample : shuffled_order(static_cast<int>(labels.size()), seed, kEpochOfSplit)) {
    int& left = wanted[labels[static_cast<std::size_t>(sample)]];
    (left > 0 ? split.test : split.train).push_back(sample);
    left = std::max(0, left - 1);
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.test.begin(), split.test.end());
  return split;
}

SplitSet split_data_set(std::shared_ptr<const DataSet> whole, double share, std::int64_t seed) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(whole->size()));
  for (int sample = 0; sample < whole->size(); ++sample)
    labels[static_cast<std::size_t>(sample)] = whole->label(sample);
  SplitSamples split = split_by_class(labels, share, seed);
  if (split.test.empty())
    throw Error(
        ErrorKind::data,
        fmt::format(
            "data.split is {}: no class of data.train has two samples, wanted one to train and one to evaluate on",
            share));
  return {std::make_unique<SubSet>(whole, std::move(split.train)),
          std::make_unique<SubSet>(std::move(whole), std::move(split.test))};
}

}  // namespace fleetrun::runtime
