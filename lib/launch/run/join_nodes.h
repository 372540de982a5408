// How this node joins a run over several nodes: what it tells the others, and its cluster when all have joined.
#pragma once
#include "launch/nodes/node_session.h"
#include "launch/plan/cluster.h"
#include "launch/report/report.h"
#include "launch/run/run_plan.h"

namespace fleetrun::launch {

// The plan has members. Throws Error when there is no usable key.
NodeSessionOptions node_options(const RunPlan& plan, const ExitReport& report);

// `cluster` knew only this node.
ClusterSpec with_others(ClusterSpec cluster, const Placed& placed);

}  // namespace fleetrun::launch
