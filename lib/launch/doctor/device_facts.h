// The GPUs and InfiniBand ports of this node.
#pragma once
#include "launch/doctor/examination.h"
#include "launch/plan/cluster.h"

namespace fleetrun::launch {

// Of the GPUs, only those that the run uses can be a problem.
void read_device_facts(const ClusterSpec& cluster, NodeFacts& facts);

}  // namespace fleetrun::launch
