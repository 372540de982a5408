// The flags of runs on several nodes.
#pragma once
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun::launch {

// As launch_flags(), which includes them.
std::vector<Flag> node_flags(LaunchOptions& options);

}  // namespace fleetrun::launch
