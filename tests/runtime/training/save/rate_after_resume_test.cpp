#include "runtime/training/save/rate_after_resume.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::rate_after_resume_test {
namespace {

constexpr int kSamples = 320;

job::JobSpec job_with(const job::ScheduleSpec& schedule) {
  job::JobSpec job;
  job.train.epochs = 10;
  job.optimizer.learning_rate = schedule;
  return job;
}

TrainingState state(int ranks, std::int64_t steps, int epoch) {
  return {.steps = steps, .epoch = epoch, .world_size = ranks, .batch_size = 16, .samples = kSamples};
}

// After two epochs of one rank, which take 20 steps each; two ranks go on.
std::string difference(const job::JobSpec& job) {
  return difference_of_rate(job, state(1, 40, 2), state(2, 20, 2), 10);
}

TEST_CASE("a warm-up that counts other steps after a resume has a warning with both rates") {
  CHECK(
      difference(job_with({.base = 1, .warmup_steps = 40})) ==
      "warning: the learning rate goes on with 0.525 instead of 1: optimizer.learning_rate counts steps, and the "
      "40 steps of the checkpoint count as 20 now");
}

TEST_CASE("boundaries in steps have that warning, too, and boundaries in epochs need none") {
  job::ScheduleSpec schedule = {
      .name = job::ScheduleName::piecewise, .boundaries = {30}, .values = {0.1, 0.01}};
  CHECK(difference(job_with(schedule))
            .starts_with("warning: the learning rate goes on with 0.1 instead of 0.01: "));
  schedule.unit = job::ScheduleUnit::epoch;
  schedule.boundaries = {2};
  CHECK(difference(job_with(schedule)) == "");
}

TEST_CASE("a schedule goes on without a warning where its rate stays, or its steps keep their numbers") {
  CHECK(difference(job_with({.base = 1})) == "");
  CHECK(difference(job_with({.name = job::ScheduleName::cosine, .base = 1})) == "");
  CHECK(difference(job_with({.base = 1, .warmup_steps = 5})) == "");  // over, with either number
  const job::JobSpec warming = job_with({.base = 1, .warmup_steps = 40});
  CHECK(difference_of_rate(warming, state(1, 40, 2), state(1, 40, 2), 20) == "");
  job::JobSpec by_steps = warming;
  by_steps.train.epochs.reset();
  by_steps.train.max_steps = 200;
  CHECK(difference_of_rate(by_steps, state(1, 40, 2), state(2, 40, 2), 10) == "");
}

}  // namespace
}  // namespace fleetrun::runtime::rate_after_resume_test
