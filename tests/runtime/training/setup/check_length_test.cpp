#include "runtime/training/setup/check_length.h"

#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::check_length_test {
namespace {

using Lines = std::vector<std::string>;

job::JobSpec job_of_epochs(int epochs) {
  job::JobSpec job;
  job.train.epochs = epochs;
  return job;
}

TrainingState merging(int k_steps, std::int64_t steps = 0, int batches = 0) {
  return {.steps = steps, .merged = {.batches = batches, .k_steps = k_steps, .scaling = ""}};
}

TEST_CASE("a training in which no step would update the parameters is refused") {
  check_error(
      ErrorKind::config,
      "strategy.gradient_merge_configs.k_steps is 100, but the training has only 24 steps in 3 epochs, so no step "
      "updates the parameters",
      [] { check_length(job_of_epochs(3), merging(100), 24); });
  CHECK(check_length(job_of_epochs(3), merging(24), 24) == Lines{});
}

TEST_CASE("steps at the end that update nothing are counted from the last update") {
  CHECK(
      check_length(job_of_epochs(3), merging(5), 24) ==
      Lines{
          "strategy.gradient_merge_configs.k_steps is 5: 4 steps at the end of the training update nothing"});
  CHECK(check_length(job_of_epochs(3), merging(5, 9, 0), 24) == Lines{});
  CHECK(
      check_length(job_of_epochs(3), merging(5, 9, 1), 24) ==
      Lines{
          "strategy.gradient_merge_configs.k_steps is 5: 1 step at the end of the training updates nothing"});
  CHECK(
      check_length(job_of_epochs(3), merging(100, 8, 8), 24) ==
      Lines{
          "strategy.gradient_merge_configs.k_steps is 100: 24 steps at the end of the training update nothing"});
}

TEST_CASE("a warm-up that is longer than the training is a warning") {
  job::JobSpec job = job_of_epochs(1);
  job.optimizer.learning_rate.warmup_steps = 8;
  CHECK(
      check_length(job, {}, 8) ==
      Lines{
          "warning: optimizer.learning_rate.warmup_steps is 8, but the training has only 8 steps in 1 epoch: the "
          "warm-up does not end"});
  CHECK(check_length(job, {}, 9) == Lines{});
  job.train.epochs.reset();
  CHECK(check_length(job, {}, 8) == Lines{});
}

}  // namespace
}  // namespace fleetrun::runtime::check_length_test
