#include "runtime/checkpoint/training_state.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::training_state_test {
namespace {

TrainingState state(int world_size, int batch_size, std::int64_t steps = 0, int epoch = 0, int batch = 0) {
  return {.steps = steps, .epoch = epoch, .batch = batch, .world_size = world_size, .batch_size = batch_size};
}

TEST_CASE("a training of as many samples a step goes on exactly where it was") {
  const ResumePoint point = plan_resume(state(2, 8, 57, 3, 12), state(4, 4), 15, Length::epochs);
  CHECK(point.state.steps == 57);
  CHECK(point.state.epoch == 3);
  CHECK(point.state.batch == 12);
  CHECK(point.state.world_size == 4);
  CHECK(point.repeated == 0);
}

TEST_CASE(
    "with other samples a step the place in the epoch is rounded down, and the repeated samples are counted") {
  const ResumePoint point =
      plan_resume(state(2, 8, 57, 3, 12), state(5, 8), 6, Length::epochs);  // 192 samples are done
  CHECK(point.state.batch == 4);                                            // of 40 samples each
  CHECK(point.state.steps == 3 * 6 + 4);
  CHECK(point.repeated == 32);
}

TEST_CASE("where an epoch has fewer batches than it had, or more, steps are counted as it has them now") {
  const ResumePoint fewer = plan_resume(state(2, 8, 57, 3, 12), state(2, 8), 10, Length::epochs);
  CHECK(fewer.state.batch == 10);
  CHECK(fewer.state.steps == 3 * 10 + 10);
  CHECK(fewer.repeated == 0);
  const ResumePoint more = plan_resume(state(2, 8, 57, 3, 12), state(2, 8), 20, Length::epochs);
  CHECK(more.state.batch == 12);
  CHECK(more.state.steps == 3 * 20 + 12);
}

TEST_CASE("row 7: steps that a training is measured by stay those that were done, with any number of ranks") {
  for (const int ranks : {1, 2, 4}) {
    const ResumePoint point = plan_resume(state(2, 8, 57, 3, 12), state(ranks, 8), 30 / ranks, Length::steps);
    CHECK(point.state.steps == 57);
    CHECK(point.state.epoch == 3);
    CHECK(point.state.batch == 24 / ranks);
  }
}

TEST_CASE("an epoch that was done stays done, though its last step was padded") {
  const ResumePoint point = plan_resume(state(2, 8, 60, 3, 15), state(3, 8), 10, Length::epochs);
  CHECK(point.state.batch == 10);
  CHECK(point.repeated == 0);
}

TEST_CASE("the first batch of an epoch is the first batch with any number of ranks") {
  const ResumePoint point = plan_resume(state(2, 8, 45, 3, 0), state(1, 8), 30, Length::epochs);
  CHECK(point.state.epoch == 3);
  CHECK(point.state.batch == 0);
  CHECK(point.state.steps == 90);
  CHECK(point.repeated == 0);
}

}  // namespace
}  // namespace fleetrun::runtime::training_state_test
