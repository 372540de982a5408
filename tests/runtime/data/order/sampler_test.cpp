#include "runtime/data/order/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

namespace fleetrun::runtime::sampler_test {
namespace {

TEST_CASE("a shuffled order holds every sample once and depends on seed and epoch alone") {
  std::vector<std::int32_t> order = shuffled_order(1000, 3, 5);
  CHECK(order == shuffled_order(1000, 3, 5));
  CHECK(order != shuffled_order(1000, 3, 6));
  CHECK(order != shuffled_order(1000, 4, 5));
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 1000; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("the order of seed 1, epoch 0 is the same on every machine") {
  // By the definition of SplitMix64 and of sample_random.h, worked out apart from this code.
  CHECK(shuffled_order(8, 1, 0) == std::vector<std::int32_t>{0, 4, 1, 2, 3, 5, 7, 6});
}

// Of 100 samples: 90 of class 0, 7 of class 2, 3 of class 5.
std::vector<std::int32_t> uneven_labels() {
  std::vector<std::int32_t> labels(100, 0);
  for (std::size_t i = 0; i < 7; ++i) labels[10 * i] = 2;
  for (std::size_t i = 0; i < 3; ++i) labels[10 * i + 5] = 5;
  return labels;
}

TEST_CASE("a balanced order has as many samples of each class, and as many of each sample of a class") {
  const std::vector<std::int32_t> labels = uneven_labels();
  for (const int epoch : {0, 1, 7}) {
    const std::vector<std::int32_t> order = balanced_order(labels, 3, epoch);
    CHECK(order == balanced_order(labels, 3, epoch));
    CHECK(order.size() == labels.size());
    std::map<std::int32_t, int> of_class, of_sample;
    for (const std::int32_t sample : order) {
      ++of_class[labels[static_cast<std::size_t>(sample)]];
      ++of_sample[sample];
    }
    for (const auto& [label, count] : of_class) CHECK((count == 33 || count == 34));
    for (const auto& [sample, count] : of_sample) {
      const std::int32_t label = labels[static_cast<std::size_t>(sample)];
      if (label == 0) CHECK(count == 1);
      if (label == 2) CHECK((count == 4 || count == 5));
      if (label == 5) CHECK((count == 11 || count == 12));
    }
    CHECK(of_class.size() == 3);
  }
  CHECK(balanced_order(labels, 3, 0) != balanced_order(labels, 3, 1));
  CHECK(balanced_order(labels, 3, 0) != balanced_order(labels, 4, 0));
}

TEST_CASE("the ranks divide one balanced order among them, however many there are") {
  const std::vector<std::int32_t> labels = uneven_labels();
  const std::vector<std::int32_t> order = balanced_order(labels, 1, 2);
  for (const int world : {1, 2, 5}) {
    std::vector<std::int32_t> dealt(labels.size());
    for (int rank = 0; rank < world; ++rank) {
      const int batch = 20 / world;
      const std::vector<std::int32_t> mine = plan_epoch(
          {.samples = 100, .batch = batch, .rank = rank, .world = world, .seed = 1, .labels = &labels}, {2});
      for (int i = 0; i < static_cast<int>(mine.size()); ++i)
        dealt[static_cast<std::size_t>(i / batch * 20 + rank * batch + i % batch)] =
            mine[static_cast<std::size_t>(i)];
    }
    CHECK(dealt == order);
  }
}

TEST_CASE("every place of an order is as likely for every sample") {
  constexpr int kSamples = 6, kEpochs = 6000;
  std::map<std::pair<int, int>, int> counts;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::int32_t> order = shuffled_order(kSamples, 1, epoch);
    for (int place = 0; place < kSamples; ++place) ++counts[{place, order[static_cast<std::size_t>(place)]}];
  }
  for (const auto& [key, count] : counts) {
    CHECK(count > 850);  // of 1000; the standard deviation is 29
    CHECK(count < 1150);
  }
  CHECK(counts.size() == kSamples * kSamples);
}

TEST_CASE("sample k*B*N + r*B + i of the order goes to rank r, batch k, position i") {
  for (const int world : {1, 2, 3, 4})
    for (const int batch : {1, 4, 5})
      for (const int samples : {1, 19, 20, 40, 61}) {
        const std::vector<std::int32_t> order = shuffled_order(samples, 7, 2);
        for (const job::Uneven uneven : {job::Uneven::pad, job::Uneven::drop})
          for (int rank = 0; rank < world; ++rank) {
            const ShardSpec spec{samples, batch, rank, world, 7, true, uneven};
            const std::vector<std::int32_t> mine = plan_epoch(spec, {2});
            const int batches = batches_per_epoch(spec);
            const int round = batch * world;
            CHECK(batches == (uneven == job::Uneven::pad ? (samples + round - 1) / round : samples / round));
            REQUIRE(mine.size() == static_cast<std::size_t>(batches) * static_cast<std::size_t>(batch));
            for (int k = 0; k < batches; ++k)
              for (int i = 0; i < batch; ++i) {
                const int place = k * round + rank * batch + i;
                const std::int32_t found = mine[static_cast<std::size_t>(k * batch + i)];
                if (place < samples)
                  CHECK(found == order[static_cast<std::size_t>(place)]);
                else
                  CHECK((found >= 0 && found < samples));
              }
          }
      }
}

TEST_CASE("the ranks of a global batch deal out the same samples in each step, however many they are") {
  for (const job::Uneven uneven : {job::Uneven::pad, job::Uneven::drop}) {
    const ShardSpec alone{.samples = 61, .batch = 10, .seed = 7, .uneven = uneven};
    const std::vector<std::int32_t> whole = plan_epoch(alone, {2});
    for (const int world : {1, 2, 3, 4, 10}) {
      CAPTURE(world);
      std::vector<std::int32_t> together(whole.size());
      ShardSpec spec = alone;
      spec.world = world;
      spec.global_batch = 10;
      CHECK(batches_per_epoch(spec) == batches_per_epoch(alone));
      for (spec.rank = 0; spec.rank < world; ++spec.rank) {
        const std::vector<std::int32_t> mine = plan_epoch(spec, {2});
        const job::StepShare share = spec.shares().of(spec.rank);
        for (std::size_t i = 0; i < mine.size(); ++i) {
          const auto count = static_cast<std::size_t>(share.count);
          together.at(i / count * 10 + static_cast<std::size_t>(share.first) + i % count) = mine[i];
        }
      }
      CHECK(together == whole);
    }
  }
}

TEST_CASE("padding repeats random samples, other ones in each epoch") {
  const ShardSpec spec{.samples = 101, .batch = 100, .seed = 1};
  const auto padding = [&](int epoch) {
    const std::vector<std::int32_t> plan = plan_epoch(spec, {epoch});
    return std::vector<std::int32_t>(plan.begin() + 101, plan.end());
  };
  CHECK(padding(0) == padding(0));
  CHECK(padding(0) != padding(1));
  const std::vector<std::int32_t> repeated = padding(0);
  CHECK(std::set<std::int32_t>(repeated.begin(), repeated.end()).size() > 40);
}

TEST_CASE("without shuffling samples come in order") {
  CHECK(plan_epoch(
            {.samples = 6, .batch = 2, .rank = 1, .world = 2, .shuffle = false, .uneven = job::Uneven::drop},
            {4}) == std::vector<std::int32_t>{2, 3});
}

TEST_CASE("an evaluation sees every sample exactly once over all ranks, in the same number of batches") {
  for (const int world : {1, 2, 3, 5})
    for (const int batch : {1, 4, 7})
      for (const int samples : {1, 6, 28, 30}) {
        std::multiset<std::int32_t> seen;
        for (int rank = 0; rank < world; ++rank) {
          const ShardSpec spec{.samples = samples,
                               .batch = batch,
                               .rank = rank,
                               .world = world,
                               .uneven = job::Uneven::drop,
                               .evaluation = true};
          const std::vector<std::int32_t> plan = plan_epoch(spec, {3});
          CHECK(plan.size() ==
                static_cast<std::size_t>(((samples + batch * world - 1) / (batch * world)) * batch));
          for (const std::int32_t sample : plan)
            if (sample != kNoSample) seen.insert(sample);
        }
        REQUIRE(seen.size() == static_cast<std::size_t>(samples));
        int expected = 0;
        for (const std::int32_t sample : seen) CHECK(sample == expected++);
      }
}

TEST_CASE("the last batches of an evaluation mark the places that hold no sample") {
  CHECK(plan_epoch({.samples = 5, .batch = 2, .rank = 1, .world = 2, .evaluation = true}, {}) ==
        std::vector<std::int32_t>{2, 3, kNoSample, kNoSample});
}

}  // namespace
}  // namespace fleetrun::runtime::sampler_test
