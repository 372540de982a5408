#include "launch/doctor/tournament.h"

#include <algorithm>

namespace fleetrun::launch {

// The first node stays, and the others move one place along the circle. With an odd number, one rests (-1).
std::vector<std::vector<Pair>> plan_tournament(std::vector<int> nodes, int most_rounds) {
  if (nodes.size() < 2) return {};
  if (nodes.size() % 2 != 0) nodes.push_back(-1);
  std::vector<std::vector<Pair>> rounds;
  for (int round = 0; round < std::min(most_rounds, static_cast<int>(nodes.size()) - 1); ++round) {
    std::vector<Pair>& pairs = rounds.emplace_back();
    for (std::size_t i = 0; i < nodes.size() / 2; ++i) {
      const int one = nodes[i], other = nodes[nodes.size() - 1 - i];
      if (one >= 0 && other >= 0) pairs.emplace_back(one, other);
    }
    std::rotate(nodes.begin() + 1, nodes.end() - 1, nodes.end());
  }
  return rounds;
}

}  // namespace fleetrun::launch
