#include "launch/run/run_plan.h"

#include <unistd.h>

#include <string>

#include "base/error.h"
#include "launch/host/limits.h"
#include "launch/logs/log_folder.h"
#include "launch/run/fill_report.h"
#include "launch/run/run_loop.h"

namespace fleetrun::launch {
namespace {

LogPlan plan_logs(const NodeRun& run, const std::string& run_id) {
  return {.run_id = run_id,
          .ranks = run.cluster.local_size(),
          .has_train_report = run.job.has_value(),
          .may_start_again = run.options.max_restart.value > 0};
}

// That it cannot be written does not hide why.
void try_to_write(const LogFolder& logs, const ExitReport& report) {
  try {
    logs.release_reserve();
    write_report(logs, report);
  } catch (const Error& problem) {
    const std::string text = problem.describe("fleetrun");
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  }
}

}  // namespace

int run_node(const NodeRun& run, int front_fd) {
  raise_descriptor_limit(run.cluster.local_size());
  ExitReport report = begin_report(run);
  const LogFolder logs(run.options.log_dir.value, plan_logs(run, report.run_id));
  try {
    Supervision(run, front_fd, logs, report).run();
  } catch (const Error& error) {
    if (report.ended.steady != TimePoint()) throw;  // the report was complete, and could not be written
    report.error = error.message();
    report.verdict.exit_code = error.exit_code();
    report.ended = Moment::now();
    // A failure that was to be followed by another attempt stays the cause.
    if (!report.attempts.empty()) report.verdict.exit_code = report.attempts.back().exit_code;
    try_to_write(logs, report);
    if (report.attempts.empty()) throw;
    const std::string text =
        error.with("starting again after: " + report.attempts.back().message).describe("fleetrun");
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  }
  return report.verdict.exit_code;
}

}  // namespace fleetrun::launch
