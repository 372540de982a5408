#include "runtime/observe/scored_epoch.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace fleetrun::runtime::scored_epoch_test {
namespace {

using job::EarlyStoppingSpec, job::Metric;

constexpr std::int64_t kStepsPerEpoch = 10;

ScoredEpoch scored(Metric metric, int epoch, double value) {
  return {metric, value, epoch, (epoch + 1) * kStepsPerEpoch};
}

// The epoch after which a training with these scores ends; -1: it does not.
int end_of(const EarlyStoppingSpec& stopping, const std::vector<double>& values, Improvement& improvement) {
  for (int epoch = 0; epoch < static_cast<int>(values.size()); ++epoch) {
    count(improvement, scored(stopping.metric, epoch, values[static_cast<std::size_t>(epoch)]),
          stopping.min_delta);
    if (has_ended(improvement, stopping)) return epoch;
  }
  return -1;
}

int end_of(const EarlyStoppingSpec& stopping, const std::vector<double>& values) {
  Improvement improvement;
  return end_of(stopping, values, improvement);
}

TEST_CASE("a training ends after `patience` evaluations in a row that are no better than the best") {
  const EarlyStoppingSpec three = {.metric = Metric::loss, .patience = 3};
  CHECK(end_of(three, {1.0, 0.9, 0.8, 0.7, 0.6, 0.6, 0.65, 0.61, 0.5}) == 7);
  CHECK(end_of(three, {1.0, 1.1, 1.2, 0.9, 1.1, 1.2, 0.8}) == -1);
  CHECK(end_of({.metric = Metric::loss, .patience = 1}, {1.0, 1.0}) == 1);
  CHECK(end_of({.metric = Metric::acc1, .patience = 2}, {0.2, 0.4, 0.4, 0.3, 0.9}) == 3);
}

TEST_CASE("a change of no more than min_delta is no improvement, and does not move the best") {
  const EarlyStoppingSpec stopping = {.metric = Metric::loss, .patience = 2, .min_delta = 0.25};
  CHECK(end_of(stopping, {2.0, 1.75, 1.5}) == -1);  // 1.5 is 0.5 better than 2.0
  CHECK(end_of(stopping, {2.0, 1.875, 1.75, 0.0}) == 2);
  CHECK(end_of({.metric = Metric::acc1, .patience = 1, .min_delta = 0.25}, {0.25, 0.5}) == 1);
}

TEST_CASE("NaN and infinity are no improvement, and something finite is better") {
  const EarlyStoppingSpec stopping = {.metric = Metric::loss, .patience = 2};
  Improvement improvement;
  CHECK(end_of(stopping, {NAN, 1.0, NAN, INFINITY}, improvement) == 3);
  CHECK(improvement.best == scored(Metric::loss, 1, 1.0));
  CHECK(end_of(stopping, {NAN, NAN}) == 1);
}

TEST_CASE("an evaluation that is repeated does not count again") {
  Improvement improvement;
  for (int i = 0; i < 5; ++i) count(improvement, scored(Metric::loss, 0, 1.0), 0);
  CHECK(improvement.evaluations == 0);
  for (int i = 0; i < 5; ++i) count(improvement, scored(Metric::loss, 1, 1.5), 0);
  CHECK(improvement.evaluations == 1);
}

TEST_CASE(
    "with another number of ranks, the place tells a repeated evaluation from a new one, and not the step") {
  Improvement improvement;
  const ScoredEpoch first = {.value = 1.0, .epoch = 0, .steps = 20, .place = 160};
  count(improvement, first, 0);
  ScoredEpoch again = first, next = first;
  again.steps = 10;  // of twice as many ranks
  next.epoch = 1;
  next.place = 320;
  count(improvement, again, 0);
  CHECK(improvement.evaluations == 0);
  count(improvement, next, 0);
  CHECK(improvement.evaluations == 1);
  CHECK(improvement.epoch == 1);
}

TEST_CASE("the end of a training in words") {
  const EarlyStoppingSpec stopping = {.metric = Metric::loss, .patience = 3, .min_delta = 0.01};
  Improvement improvement;
  CHECK(end_of(stopping, {1.0, 0.9, 0.8, 0.7, 0.6, 0.6, 0.65, 0.61}, improvement) == 7);
  CHECK(describe(improvement, stopping) ==
        "stopped after epoch 7: loss did not improve by 0.01 in 3 evaluations; best epoch 4");
  Improvement never;
  const EarlyStoppingSpec one = {.metric = Metric::loss, .patience = 1};
  CHECK(end_of(one, {NAN}, never) == 0);
  CHECK(describe(never, one) ==
        "stopped after epoch 0: loss did not improve in 1 evaluation; no epoch had a finite score");
}

TEST_CASE("scores of the same samples can be compared, and those of samples that nobody knows") {
  const ScoredEpoch one = {.data_set = "00"}, other = {.data_set = "ff"}, unknown = {};
  CHECK(are_of_same_data(one, one));
  CHECK_FALSE(are_of_same_data(one, other));
  CHECK(are_of_same_data(one, unknown));
  CHECK(are_of_same_data(unknown, other));
  CHECK(read_scored_epoch(as_json(one)) == one);
  CHECK(as_json(unknown).find("data_set") == nullptr);
}

TEST_CASE("a scored epoch is read back from its JSON, bit by bit") {
  const ScoredEpoch third = {Metric::acc5, 1.0 / 3, 2, 141, "00ff", 94000};
  CHECK(read_scored_epoch(as_json(third)) == third);
  CHECK(read_scored_epoch(as_json({Metric::loss, 2, 0, 1})) == ScoredEpoch{Metric::loss, 2, 0, 1});
  CHECK_FALSE(read_scored_epoch(JsonValue::object({{"metric", "f1"}})).has_value());
  CHECK_FALSE(read_scored_epoch(JsonValue("acc1")).has_value());
}

}  // namespace
}  // namespace fleetrun::runtime::scored_epoch_test
