// Every flag of a launch, one row each.
#pragma once
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun::launch {

// The rows refer to `options`: their `set` changes it, their `show` reads it.
std::vector<Flag> launch_flags(LaunchOptions& options);

}  // namespace fleetrun::launch
