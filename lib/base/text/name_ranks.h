// Ranks in a sentence: "rank 3", "ranks 0, 2, 5".
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

std::string name_ranks(const std::vector<int>& ranks);
std::string ranks_are(const std::vector<int>& ranks);   // "rank 3 is", "ranks 0, 2, 5 are"
std::string ranks_have(const std::vector<int>& ranks);  // "rank 3 has", "ranks 0, 2, 5 have"

}  // namespace fleetrun
