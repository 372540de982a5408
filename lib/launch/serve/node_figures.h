// On the first node of a run: the figures of the ranks on other nodes. It asks each node for them once a second.
#pragma once
#include <vector>

#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"
#include "launch/serve/prometheus_text.h"

namespace fleetrun::launch {

class NodeFigures {
 public:
  static constexpr auto kEvery = std::chrono::seconds(1);

  NodeFigures(EventLoop& loop, NodeSession* nodes);  // null nodes: this node is alone. Both outlive it.
  NodeFigures(const NodeFigures&) = delete;
  NodeFigures& operator=(const NodeFigures&) = delete;

  void begin();     // somebody wants them; later calls do nothing
  void renumber();  // nodes have come or gone: forgets the figures
  void finish();    // asks once more, and waits a moment for the answers
  // In rank order, starting after this node's last rank. The ranks of a lost or silent node count as down.
  const std::vector<RankMetrics>& ranks() const { return ranks_; }

 private:
  void ask_all();
  void take(int node, const std::optional<std::string>& answer);

  EventLoop& loop_;
  NodeSession* const nodes_;
  std::vector<RankMetrics> ranks_;
  std::vector<bool> asked_;  // by node: whether it still owes an answer
  int generation_ = 0;       // of the numbers of the nodes
  bool begun_ = false;
};

}  // namespace fleetrun::launch
