#include "runtime/data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/order/sampler.h"
#include "runtime/data/same_files.h"

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

SplitSamples split_by_class(const std::vector<std::int32_t>& labels, double share, std::int64_t seed,
                            const std::vector<std::int32_t>& first_copies) {
  const int samples = static_cast<int>(labels.size());
  const auto label_of = [&](int sample) { return labels[static_cast<std::size_t>(sample)]; };
  const auto first_of = [&](int sample) {
    return first_copies.empty() ? sample : first_copies[static_cast<std::size_t>(sample)];
  };
  std::map<std::int32_t, int> of_class, wanted;
  for (int sample = 0; sample < samples; ++sample) of_class[label_of(sample)] += first_of(sample) == sample;
  for (const auto& [label, count] : of_class)
    wanted[label] = count < 2 ? 0 : std::clamp(static_cast<int>(std::lround(count * share)), 1, count - 1);
  std::vector<bool> is_set_aside(labels.size());
  for (const std::int32_t sample : shuffled_order(samples, seed, kEpochOfSplit)) {
    if (first_of(sample) != sample) continue;
    int& left = wanted[label_of(sample)];
    is_set_aside[static_cast<std::size_t>(sample)] = left > 0;
    left = std::max(0, left - 1);
  }
  SplitSamples split;
  for (int sample = 0; sample < samples; ++sample)
    (is_set_aside[static_cast<std::size_t>(first_of(sample))] ? split.test : split.train).push_back(sample);
  return split;
}

SplitSet split_data_set(std::shared_ptr<const DataSet> whole, double share, std::int64_t seed) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(whole->size()));
  for (int sample = 0; sample < whole->size(); ++sample)
    labels[static_cast<std::size_t>(sample)] = whole->label(sample);
  SplitSamples split = split_by_class(labels, share, seed, find_first_copies(*whole));
  if (split.test.empty())
    throw Error(
        ErrorKind::data,
        fmt::format(
            "data.split is {}: no class of data.train has two images, wanted one to train and one to evaluate on",
            share));
  return {std::make_unique<SubSet>(whole, std::move(split.train)),
          std::make_unique<SubSet>(std::move(whole), std::move(split.test))};
}

}  // namespace fleetrun::runtime
