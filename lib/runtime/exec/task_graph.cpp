#include "runtime/exec/task_graph.h"

#include <algorithm>

namespace fleetrun::runtime {

void TaskGraph::add_edge(int before, int after) {
  std::vector<int>& list = successors.at(static_cast<std::size_t>(before));
  const auto place = std::lower_bound(list.begin(), list.end(), after);
  if (place != list.end() && *place == after) return;
  list.insert(place, after);
  ++dependencies.at(static_cast<std::size_t>(after));
}

}  // namespace fleetrun::runtime
