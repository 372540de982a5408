#include "runtime/training/setup/check_metrics.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"

namespace fleetrun::runtime {

void check_metrics(const job::JobSpec& job, int classes) {
  constexpr int kTopFive = 5;
  if (classes > kTopFive) return;
  const auto require = [&](const char* key, const std::optional<job::Metric>& metric) {
    if (metric == job::Metric::acc5)
      throw Error(ErrorKind::config,
                  fmt::format("{} is \"acc5\", wanted \"acc1\" or \"loss\": with {} acc5 is always 1", key,
                              plural(classes, "class", "es")));
  };
  require("checkpoint.keep_best", job.checkpoint.keep_best);
  if (job.train.early_stopping) require("train.early_stopping.metric", job.train.early_stopping->metric);
}

}  // namespace fleetrun::runtime
