#include "runtime/checkpoint/training_state.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "runtime/data/order/sampler.h"

namespace fleetrun::runtime::training_state_test {
namespace {

using job::Uneven;

constexpr int kSamples = 240;

TrainingState state(int world_size, int batch_size, std::int64_t steps = 0, int epoch = 0, int batch = 0) {
  return {.steps = steps,
          .epoch = epoch,
          .batch = batch,
          .world_size = world_size,
          .batch_size = batch_size,
          .samples = kSamples};
}

// Of data.train with `samples` samples.
TrainingState resume(const TrainingState& saved, TrainingState now, int samples = kSamples,
                     Length length = Length::epochs, Uneven uneven = Uneven::pad) {
  now.samples = samples;
  const int batches = batches_per_epoch(
      {.samples = samples, .batch = now.batch_size, .world = now.world_size, .uneven = uneven});
  return plan_resume(saved, now, batches, length, uneven);
}

TEST_CASE("a training of as many samples a step goes on exactly where it was") {
  const TrainingState point = resume(state(2, 8, 57, 3, 12), state(4, 4));
  CHECK(point.steps == 57);
  CHECK(point.epoch == 3);
  CHECK(point.batch == 12);
  CHECK(point.world_size == 4);
  CHECK(point.shift == 0);
}

TEST_CASE(
    "with other samples a step the rest of the epoch is dealt anew, from the first sample that is not done") {
  const TrainingState point =
      resume(state(2, 8, 57, 3, 12), state(5, 8));  // 192 samples are done, 48 are left
  CHECK(point.batch == 4);                          // of 6; the last one is padded
  CHECK(point.batch * 40 + point.shift == 192);
  CHECK(point.steps == 3 * 6 + 4);
  CHECK(resume(state(2, 8, 57, 3, 12), state(5, 8), kSamples, Length::epochs, Uneven::drop).batch == 5);
}

TEST_CASE(
    "where the data has fewer samples than it had, or more, steps are counted as an epoch has them now") {
  const TrainingState fewer = resume(state(2, 8, 57, 3, 12), state(2, 8), 160);
  CHECK(fewer.batch == 10);
  CHECK(fewer.steps == 3 * 10 + 10);
  CHECK(fewer.shift == 0);
  const TrainingState more = resume(state(2, 8, 57, 3, 12), state(2, 8), 320);
  CHECK(more.batch == 12);
  CHECK(more.steps == 3 * 20 + 12);
}

TEST_CASE("row 7: steps that a training is measured by stay those that were done, with any number of ranks") {
  for (const int ranks : {1, 2, 4}) {
    const TrainingState point = resume(state(2, 8, 57, 3, 12), state(ranks, 8), kSamples, Length::steps);
    CHECK(point.steps == 57);
    CHECK(point.epoch == 3);
    CHECK(point.batch == 24 / ranks);
  }
}

TEST_CASE("an epoch that was done stays done, though its last step was padded or samples were dropped") {
  const TrainingState padded = resume(state(2, 7, 60, 3, 18), state(3, 8));  // 18 * 14 = 252
  CHECK(padded.batch == 10);
  CHECK(padded.shift == 0);
  const TrainingState dropped = resume(state(2, 7, 60, 3, 17), state(1, 2), kSamples, Length::epochs,
                                       Uneven::drop);  // 2 samples were dropped
  CHECK(dropped.batch == 120);
  CHECK(dropped.shift == 0);
}

TEST_CASE("the first batch of an epoch is the first batch with any number of ranks") {
  const TrainingState point = resume(state(2, 8, 45, 3, 0), state(1, 8));
  CHECK(point.epoch == 3);
  CHECK(point.batch == 0);
  CHECK(point.steps == 90);
  CHECK(point.shift == 0);
}

TEST_CASE("with a global batch the steps and the place in the epoch stay the same with any number of ranks") {
  TrainingState saved = state(4, 16, 57, 14, 1);
  saved.global_batch = 64;
  for (const int ranks : {1, 3, 4, 64}) {
    TrainingState now = state(ranks, (64 + ranks - 1) / ranks);
    now.global_batch = 64;
    const TrainingState point = plan_resume(saved, now, 4, Length::epochs, Uneven::pad);
    CHECK(point.steps == 57);
    CHECK(point.epoch == 14);
    CHECK(point.batch == 1);
    CHECK(point.shift == 0);
    CHECK(place_in_training(point) == place_in_training(saved));
  }
}

TEST_CASE("a place in the training counts samples, so it does not depend on the number of ranks") {
  const TrainingState saved = state(2, 8, 57, 3, 12);
  CHECK(place_in_training(saved) == 3 * kSamples + 12 * 16);
  CHECK(place_in_training(resume(saved, state(5, 8))) == place_in_training(saved));
  CHECK(resume(saved, state(5, 8)).steps != saved.steps);
  CHECK(place_in_training(state(2, 7, 72, 3, 18)) == 4 * kSamples);  // padding does not count
}

// Which samples 4, 3 and again 4 ranks train in an epoch of 960 samples, with 64 in each step.
std::map<std::int32_t, int> train_shared_epoch(Uneven uneven, int samples) {
  std::map<std::int32_t, int> trained;
  TrainingState now = {.epoch = 2, .world_size = 4, .batch_size = 16, .samples = samples, .global_batch = 64};
  for (const auto& [ranks, until] : {std::pair(4, 5), std::pair(3, 9), std::pair(4, 1000)}) {
    ShardSpec spec = {.samples = samples, .world = ranks, .uneven = uneven, .global_batch = 64};
    const int batches = batches_per_epoch(spec), last = std::min(until, batches);
    TrainingState next = now;
    next.world_size = ranks;
    now = plan_resume(now, next, batches, Length::epochs, uneven);
    for (spec.rank = 0; spec.rank < ranks; ++spec.rank) {
      const auto plan = plan_epoch(spec, {now.epoch, now.batch, now.shift});
      for (int i = now.batch * spec.batch_of_rank(); i < last * spec.batch_of_rank(); ++i)
        ++trained[plan[static_cast<std::size_t>(i)]];
    }
    now.batch = last;
  }
  return trained;
}

TEST_CASE("4 -> 3 -> 4 ranks with a global batch train each sample of an epoch exactly once") {
  const auto trained = train_shared_epoch(Uneven::drop, 960);
  CHECK(std::ssize(trained) == 960);
  for (const auto& [sample, times] : trained) CHECK((sample >= 0 && sample < 960 && times == 1));
  const auto dropped = train_shared_epoch(Uneven::drop, 1000);
  CHECK(std::ssize(dropped) == 960);  // the last 40 samples do not fill a step
  for (const auto& [sample, times] : dropped) CHECK(times == 1);
  CHECK(std::ssize(train_shared_epoch(Uneven::pad, 1000)) == 1000);
}

// How often each sample is trained in epoch 3 when the number of ranks changes again and again.
std::map<std::int32_t, int> train_epoch(std::mt19937& random, int samples, Uneven uneven) {
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  std::map<std::int32_t, int> trained;
  TrainingState now = {.epoch = 3, .world_size = pick(1, 8), .batch_size = pick(1, 9), .samples = samples};
  while (true) {
    ShardSpec spec = {.samples = samples, .batch = now.batch_size, .world = now.world_size, .uneven = uneven};
    const int batches = batches_per_epoch(spec);
    const int until = pick(0, 3) == 0 ? batches : std::min(batches, now.batch + pick(0, 5));
    for (spec.rank = 0; spec.rank < spec.world; ++spec.rank) {
      const auto plan = plan_epoch(spec, {now.epoch, now.batch, now.shift});
      for (int i = now.batch * spec.batch; i < until * spec.batch; ++i)
        ++trained[plan[static_cast<std::size_t>(i)]];
    }
    now.batch = until;
    if (until == batches) return trained;
    const TrainingState next = {.world_size = pick(1, 8), .batch_size = now.batch_size, .samples = samples};
    now = resume(now, next, samples, Length::epochs, uneven);
  }
}

TEST_CASE("elastic: when the number of ranks changes within an epoch, no sample is trained twice or never") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const int samples = 80 + round;
    const auto dropped = train_epoch(random, samples, Uneven::drop);
    for (const auto& [sample, times] : dropped) CHECK((sample >= 0 && times == 1));
    CHECK(std::ssize(dropped) > samples - 8 * 9);  // fewer are left out than one step has
    const auto padded = train_epoch(random, samples, Uneven::pad);
    CHECK(padded.begin()->first == 0);
    CHECK(std::ssize(padded) == samples);
  }
}

TEST_CASE("merged gradients fit only a training that would have made the same ones") {
  TrainingState saved = state(2, 8);
  saved.merged = {.batches = 1, .k_steps = 3, .scaling = "loss scale 1, One"};
  CHECK(difference_of_merging(saved, saved).empty());
  TrainingState now = saved;
  now.merged.batches = 0;
  CHECK(difference_of_merging(saved, now).empty());
  now.merged.k_steps = 4;
  now.world_size = 1;
  CHECK(difference_of_merging(saved, now) == "k_steps is 4 and was 3, the number of ranks is 1 and was 2");
  now = saved;
  now.batch_size = 16;
  CHECK(difference_of_merging(saved, now) == "data.batch_size is 16 and was 8");
  now = saved;
  now.merged.scaling = "loss scale 1024, One";
  CHECK(difference_of_merging(saved, now) ==
        "the scaling of gradients is \"loss scale 1024, One\" and was \"loss scale 1, One\"");
}

TEST_CASE("a training that goes on keeps the number of merged batches") {
  TrainingState saved = state(2, 8, 57, 3, 12);
  saved.merged.batches = 2;
  CHECK(resume(saved, state(4, 4)).merged.batches == 2);
}

TEST_CASE("in mid-epoch, a changed order of the samples is a warning") {
  using Lines = std::vector<std::string>;
  TrainingState saved = state(2, 8, 57, 3, 12);
  saved.shuffle = true;
  saved.uneven = Uneven::pad;
  CHECK(differences_of_order(saved, saved) == Lines{});
  TrainingState now = saved;
  now.shuffle = false;
  now.seed = 7;  // has no effect on an order that is not random
  CHECK(
      differences_of_order(saved, now) ==
      Lines{
          "warning: data.shuffle is false, and was true when the checkpoint was written: the rest of its epoch is "
          "drawn from another order"});
  now.shuffle = true;
  now.uneven = Uneven::drop;
  CHECK(
      differences_of_order(saved, now) ==
      Lines{
          "warning: train.seed is 7, and was 1 when the checkpoint was written: the rest of its epoch is drawn from "
          "another order",
          "warning: data.uneven is drop, and was pad when the checkpoint was written: the rest of its epoch ends as "
          "the new value says"});
  saved.batch = 0;
  CHECK(differences_of_order(saved, now) == Lines{});
}

}  // namespace
}  // namespace fleetrun::runtime::training_state_test
