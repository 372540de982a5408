#include "launch/run_node.h"

#include "base/error.h"
#include "launch/limits.h"
#include "launch/log_folder.h"
#include "launch/run_report.h"
#include "launch/supervision.h"

namespace fleetrun::launch {

int run_node(const NodeRun& run, int front_fd) {
  raise_descriptor_limit(run.cluster.local_size());
  ExitReport report = begin_report(run);
  const LogFolder logs(run.options.log_dir.value);
  try {
    Supervision(run, front_fd, logs, report).run();
  } catch (const Error& error) {
    if (report.ended.steady != TimePoint()) throw;  // the report was complete, and could not be written
    report.error = error.message();
    report.verdict.exit_code = error.exit_code();
    report.ended = Moment::now();
    write_report(logs, report);
    throw;
  }
  return report.verdict.exit_code;
}

}  // namespace fleetrun::launch
