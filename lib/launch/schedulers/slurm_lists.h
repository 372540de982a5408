// Slurm's short forms of lists.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

// "node[001-002,7],gpu-a[1-2]b[3-4]" is node001, node002, node7, gpu-a1b3, gpu-a1b4, gpu-a2b3, gpu-a2b4. The last bracket
// varies fastest. Throws Error(usage) for anything else, and for more hosts than a run can have.
std::vector<std::string> expand_hosts(const std::string& source, const std::string& text);

// "2(x3),1" is 2, 2, 2, 1. Throws Error(usage).
std::vector<int> expand_counts(const std::string& source, const std::string& text);

}  // namespace fleetrun::launch
