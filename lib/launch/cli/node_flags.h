// The flags of runs on several nodes.
#pragma once
#include <vector>

#include "launch/cli/flag.h"
#include "launch/cli/launch_options.h"

namespace fleetrun::launch {

// As launch_flags(), which includes them.
std::vector<Flag> node_flags(LaunchOptions& options);

}  // namespace fleetrun::launch
