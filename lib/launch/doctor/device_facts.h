// The GPUs and InfiniBand ports of this node.
#pragma once
#include "launch/doctor/examination.h"

namespace fleetrun::launch {

void read_device_facts(NodeFacts& facts);

}  // namespace fleetrun::launch
