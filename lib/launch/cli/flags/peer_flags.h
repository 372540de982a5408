// The flags that fleetrun takes from other launchers, one row each: what they do here, or what stands for them.
#pragma once
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun::launch {

// The rows refer to `options`.
std::vector<Flag> peer_flags(LaunchOptions& options);

}  // namespace fleetrun::launch
