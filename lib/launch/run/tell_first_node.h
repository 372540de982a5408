// A node that cannot start its part of a run tells the first node, so that the others do not wait for it.
#pragma once
#include "base/error/error.h"
#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/plan/membership.h"

namespace fleetrun::launch {

// Tries for up to 2 s to reach the first node. Throws nothing: `error` is what the user has to know.
void tell_first_node(const Membership& members, const LaunchOptions& options, const Environment& environment,
                     const Error& error);

}  // namespace fleetrun::launch
