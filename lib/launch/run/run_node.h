// The run as the middle process sees it: from the log folder to the report.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "job/parse_job.h"
#include "launch/cli/launch_options.h"
#include "launch/plan/cluster.h"
#include "launch/plan/program.h"

namespace fleetrun::launch {

struct NodeRun {
  const LaunchOptions& options;
  const Environment& environment;
  const Program& program;
  const std::optional<job::ParsedJob>& job;
  const std::map<int, Program>& wrapped;  // of ranks with --debug_rank
  const ClusterSpec& cluster;
  const std::vector<std::string>& warnings;  // of what was looked at before
  bool quiet = false;                        // no banner
};

// The exit code of the run. `front_fd` reaches its end when the front process is gone.
// Throws Error when the run cannot begin.
int run_node(const NodeRun& run, int front_fd);

}  // namespace fleetrun::launch
