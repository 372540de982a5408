// Which rank is on which node, and the file .nodes in the log folder, where readers of the logs find that.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/logs/log_folder.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

struct RankRange {
  int first = 0, count = 0;

  int last() const { return first + count - 1; }
  bool contains(int rank) const { return rank >= first && rank <= last(); }
};

RankRange ranks_of_node(const Placed& placed, int node);
int world_of(const Placed& placed);
std::optional<int> node_of_rank(const Placed& placed, int rank);
std::string name_of_node(const Placed& placed, int node);  // "node 1 (10.0.0.2, beta)"
// The number of a node that may have had another one in an earlier attempt. None: it is not among these.
std::optional<int> number_of_node(const Placed& placed, const NodePlace& node);

void write_places(const LogFolder& logs, const Placed& placed);
std::optional<Placed> read_places(const std::string& folder);  // none: the run in this folder has one node
// The places of the attempts after this one, where they differ from those before: first those in attempt-K/.
std::vector<Placed> later_places(const std::string& folder, int attempt);

}  // namespace fleetrun::launch
