#include "runtime/data/split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "runtime/data/expect_error.h"
#include "runtime/data/loader.h"

namespace fleetrun::runtime::split_test {
namespace {

std::vector<std::int32_t> labels_of(const std::vector<int>& sizes) {
  std::vector<std::int32_t> labels;
  for (std::size_t label = 0; label < sizes.size(); ++label)
    labels.insert(labels.end(), static_cast<std::size_t>(sizes[label]), static_cast<std::int32_t>(label));
  return labels;
}

std::vector<int> counts_of(const std::vector<std::int32_t>& samples,
                           const std::vector<std::int32_t>& labels) {
  std::vector<int> counts(4);
  for (const std::int32_t sample : samples)
    ++counts.at(static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)]));
  return counts;
}

TEST_CASE("each class gives its share, a small one at least one sample, one sample alone stays in training") {
  const std::vector<std::int32_t> labels = labels_of({100, 20, 2, 1});
  const SplitSamples split = split_by_class(labels, 0.1, 7);
  CHECK(counts_of(split.test, labels) == std::vector<int>{10, 2, 1, 0});
  CHECK(counts_of(split.train, labels) == std::vector<int>{90, 18, 1, 1});
  std::set<std::int32_t> all(split.train.begin(), split.train.end());
  all.insert(split.test.begin(), split.test.end());
  CHECK(all.size() == labels.size());
  CHECK(std::is_sorted(split.test.begin(), split.test.end()));
}

TEST_CASE("the seed draws the samples, and the same seed draws the same") {
  const std::vector<std::int32_t> labels = labels_of({50, 50});
  CHECK(split_by_class(labels, 0.2, 1).test == split_by_class(labels, 0.2, 1).test);
  CHECK(split_by_class(labels, 0.2, 1).test != split_by_class(labels, 0.2, 2).test);
}

TEST_CASE("however large the share, each class keeps a sample to train on") {
  const std::vector<std::int32_t> labels = labels_of({3, 2});
  CHECK(counts_of(split_by_class(labels, 0.99, 1).train, labels) == std::vector<int>{1, 1, 0, 0});
}

TEST_CASE("copies of an image go to the same side, and a class of copies of one image stays in training") {
  const std::vector<std::int32_t> labels = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
  const std::vector<std::int32_t> first = {0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 8};
  for (const std::int64_t seed : {1, 2, 3}) {
    const SplitSamples split = split_by_class(labels, 0.5, seed, first);
    CHECK(counts_of(split.test, labels) == std::vector<int>{4, 0, 0, 0});
    for (const std::int32_t sample : split.test)
      CHECK(std::ranges::count(split.test, first[static_cast<std::size_t>(sample)]) == 1);
    CHECK(std::ranges::is_sorted(split.train));
    CHECK(split.train.size() + split.test.size() == labels.size());
  }
}

job::DataSetSpec synthetic(int samples, int classes) {
  job::DataSetSpec spec;
  spec.format = job::DataFormat::synthetic;
  spec.samples = samples;
  spec.shape = {1, 4, 4};
  spec.channels = 1;
  spec.classes = classes;
  return spec;
}

TEST_CASE("the parts of a data set have its samples, labels and facts") {
  const std::shared_ptr<const DataSet> whole = open_data_set(synthetic(40, 4));
  const SplitSet split = split_data_set(whole, 0.25, 3);
  CHECK(split.train->size() + split.test->size() == 40);
  CHECK(split.test->shape() == whole->shape());
  CHECK(split.test->classes() == 4);
  ReadScratch scratch;
  std::vector<std::uint8_t> part(whole->shape().elements()), original(part.size());
  for (int i = 0; i < split.test->size(); ++i) {
    int found = 0;
    for (int sample = 0; sample < whole->size(); ++sample)
      if (whole->describe(sample) == split.test->describe(i)) found = sample;
    CHECK(split.test->label(i) == whole->label(found));
    split.test->read({.sample = i}, scratch, part.data());
    whole->read({.sample = found}, scratch, original.data());
    CHECK(part == original);
  }
}

TEST_CASE("a data set with one sample a class cannot be split") {
  const std::shared_ptr<const DataSet> whole = open_data_set(synthetic(1, 2));
  check_error(ErrorKind::data, "data.split is 0.5: no class of data.train has two images",
              [&] { split_data_set(whole, 0.5, 1); });
}

}  // namespace
}  // namespace fleetrun::runtime::split_test
