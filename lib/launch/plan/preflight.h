// A look at what would go wrong or slow later: told before anything is started, never a reason not to start.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/launch_options.h"
#include "launch/plan/cluster.h"
#include "launch/plan/embedded_runtime.h"

namespace fleetrun::launch {

struct PreflightRequest {
  const LaunchOptions& options;
  const Environment& environment;
  const std::optional<EmbeddedRuntime>& embedded;
  const ClusterSpec& cluster;
};

// One text for each thing to look at.
std::vector<std::string> preflight(const PreflightRequest& request);

}  // namespace fleetrun::launch
