#include "runtime/training/setup/check_metrics.h"

#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::check_metrics_test {
namespace {

TEST_CASE("acc5 chooses no epoch where a model has five classes or fewer") {
  job::JobSpec job;
  CHECK_NOTHROW(check_metrics(job, 3));
  job.checkpoint.keep_best = job::Metric::acc5;
  CHECK_NOTHROW(check_metrics(job, 6));
  check_error(
      ErrorKind::config,
      "checkpoint.keep_best is \"acc5\", wanted \"acc1\" or \"loss\": with 5 classes acc5 is always 1",
      [&] { check_metrics(job, 5); });
  job.checkpoint.keep_best = job::Metric::acc1;
  job.train.early_stopping = job::EarlyStoppingSpec{.metric = job::Metric::acc5};
  check_error(ErrorKind::config, "train.early_stopping.metric is \"acc5\"", [&] { check_metrics(job, 3); });
}

}  // namespace
}  // namespace fleetrun::runtime::check_metrics_test
