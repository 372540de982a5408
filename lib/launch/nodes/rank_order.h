// Which node gets which number in a run.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace fleetrun::launch {

// Nodes that claim a number get it, and the others take the free numbers, as they came. Numbers that nobody has are
// skipped: returns the nodes in the order of their numbers. All claims differ.
std::vector<std::size_t> rank_order(const std::vector<std::optional<int>>& claims);

}  // namespace fleetrun::launch
