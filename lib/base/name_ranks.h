// Ranks in a sentence: "rank 3", "ranks 0, 2, 5".
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

std::string name_ranks(const std::vector<int>& ranks);

}  // namespace fleetrun
