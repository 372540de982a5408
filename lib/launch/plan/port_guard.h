// Ports that stay ours from the moment they are chosen. A bound socket that never listens holds each port: no other
// program gets it, but a worker that sets SO_REUSEADDR or SO_REUSEPORT can listen there.
#pragma once
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/plan/cluster.h"
#include "launch/plan/env_dialects.h"

namespace fleetrun::launch {

struct HeldPorts {
  Endpoints endpoints;
  std::vector<UniqueFd> claims;   // against other launchers
  std::vector<UniqueFd> holders;  // against all other programs; none with --no_port_hold
};

// Holds one port per rank of this node, and one for the master. Over several nodes prefers PaddlePaddle's ports, 6070
// and up. Throws Error(temporary) when a port that the user named is taken.
HeldPorts hold_ports(const ClusterSpec& cluster);

// The likely endpoints of all nodes, before the nodes have exchanged them.
Endpoints expect_endpoints(const ClusterSpec& cluster);

}  // namespace fleetrun::launch
