// Ports that stay ours from the moment they are chosen: each is held by a bound socket that never
// listens, so that no other program gets it and the worker, with SO_REUSEADDR or SO_REUSEPORT, can
// still listen there.
#pragma once
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/plan/cluster.h"
#include "launch/plan/env_dialects.h"

namespace fleetrun::launch {

struct HeldPorts {
  Endpoints endpoints;
  std::vector<UniqueFd> claims;   // among launchers
  std::vector<UniqueFd> holders;  // against everybody else; none with --no_port_hold
};

// One port per rank of this node and one for the master. Over several nodes those of PaddlePaddle where they are free: 6070 and up.
// Throws Error(temporary) when a port that the user named is taken.
HeldPorts hold_ports(const ClusterSpec& cluster);

// Those of all nodes, while none has told its own yet.
Endpoints expect_endpoints(const ClusterSpec& cluster);

}  // namespace fleetrun::launch
