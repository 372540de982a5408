// How this node joins a run over several nodes: what it sends to the others, and its cluster once all have joined.
#pragma once
#include <string>
#include <vector>

#include "launch/logs/log_folder.h"
#include "launch/nodes/node_session.h"
#include "launch/plan/cluster.h"
#include "launch/report/report.h"
#include "launch/run/run_plan.h"

namespace fleetrun::launch {

// The numeric addresses of the nodes that may go on with an elastic run: those of the earlier run in the log folder, and of --rejoin_at. Names
// that have no address are left out; a run that is not elastic has none. Call it before this run changes the folder.
std::vector<std::string> possible_successors(const LaunchOptions& options);

// Needs `plan.members`. Throws Error when it cannot read or make a key.
NodeSessionOptions node_options(const RunPlan& plan, const LogFolder& logs, const ExitReport& report);

// Adds the other nodes to `cluster`. Throws Error(usage) when a flag names ranks that the run does not have.
ClusterSpec with_others(ClusterSpec cluster, const LaunchOptions& options, const Placed& placed);

}  // namespace fleetrun::launch
