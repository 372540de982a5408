// What all nodes of a run must have in common.
#pragma once
#include <string>

#include "launch/cli/launch_options.h"
#include "launch/nodes/node_messages.h"
#include "launch/plan/cluster.h"

namespace fleetrun::launch {

// The version, the flags that concern the whole run, the program with its arguments, and of a job file each value: two nodes may have it
// in different folders. `job_text`: of the job file; "" for any other program.
Terms terms_of(const LaunchOptions& options, const ClusterSpec& cluster, const std::string& job_text);

}  // namespace fleetrun::launch
