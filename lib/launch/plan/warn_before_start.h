// Checks before the start for what would fail or be slow later. A finding never stops a run from starting.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/plan/cluster.h"
#include "launch/plan/embedded_runtime.h"

namespace fleetrun::launch {

struct StartRequest {
  const LaunchOptions& options;
  const Environment& environment;
  const std::optional<EmbeddedRuntime>& embedded;
  const ClusterSpec& cluster;
};

// What is probably wrong with the NCCL variables of the workers.
std::vector<std::string> lint_nccl_variables(const StartRequest& request);

// One warning per finding.
std::vector<std::string> warn_before_start(const StartRequest& request);

}  // namespace fleetrun::launch
