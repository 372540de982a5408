// Which nodes measure their link at the same time.
#pragma once
#include <utility>
#include <vector>

namespace fleetrun::launch {

using Pair = std::pair<int, int>;

// Rounds of pairs, by the circle method: no node is in two pairs of a round, and no pair comes twice. After all rounds,
// one less than the nodes, every node has met every other one; `most_rounds` limits them.
std::vector<std::vector<Pair>> plan_tournament(std::vector<int> nodes, int most_rounds);

}  // namespace fleetrun::launch
