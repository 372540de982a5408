// A file of hosts, as mpirun --hostfile and horovodrun --hostfile take it.
#pragma once
#include <string>
#include <vector>

#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

// Lines such as "node1 slots=4", "node1:4" or "node1", and comments after '#'. A host that is listed again gets more slots. max_slots
// stands for slots that are missing; other words in a line mean nothing here. Throws Error(usage) with the number of the line.
std::vector<NodeSlots> parse_host_file(const std::string& path, const std::string& text);

}  // namespace fleetrun::launch
