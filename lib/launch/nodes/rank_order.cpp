#include "launch/nodes/rank_order.h"

#include <map>

namespace fleetrun::launch {

std::vector<std::size_t> rank_order(const std::vector<std::optional<int>>& claims) {
  std::map<int, std::size_t> node_of;
  for (std::size_t node = 0; node < claims.size(); ++node)
    if (claims[node]) node_of[*claims[node]] = node;
  int next = 0;
  for (std::size_t node = 0; node < claims.size(); ++node) {
    if (claims[node]) continue;
    while (node_of.contains(next)) ++next;
    node_of[next] = node;
  }
  std::vector<std::size_t> order;
  for (const auto& [number, node] : node_of) order.push_back(node);
  return order;
}

}  // namespace fleetrun::launch
