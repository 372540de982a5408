// On the first node of a run: the figures of the ranks of the other nodes, which it asks for once a second.
#pragma once
#include <vector>

#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"
#include "launch/serve/prometheus_text.h"

namespace fleetrun::launch {

class NodeFigures {
 public:
  static constexpr auto kEvery = std::chrono::seconds(1);

  NodeFigures(EventLoop& loop, NodeSession* nodes);  // null: there are no others. Both outlive it.
  NodeFigures(const NodeFigures&) = delete;
  NodeFigures& operator=(const NodeFigures&) = delete;

  void begin();   // somebody wants them
  void finish();  // asks for their last state and waits a moment for it
  // In the order of the ranks, from that after this node's last one. Ranks of a node that is lost or silent are down.
  const std::vector<RankMetrics>& ranks() const { return ranks_; }

 private:
  void ask_all();
  void take(int node, const std::optional<std::string>& answer);

  EventLoop& loop_;
  NodeSession* const nodes_;
  std::vector<RankMetrics> ranks_;
  std::vector<bool> asked_;  // each node, without an answer yet
  bool begun_ = false;
};

}  // namespace fleetrun::launch
