#include "launch/nodes/node_search.h"

#include <algorithm>
#include <utility>

namespace fleetrun::launch {

NodeSearch::NodeSearch(EventLoop& loop, const NodeKey& key, NodeLink::Listener listener, Found found)
    : loop_(loop), key_(key), listener_(std::move(listener)), found_(std::move(found)) {}

void NodeSearch::ask(const Endpoint& node) {
  if (std::ranges::any_of(links_, [&](const Asked& one) { return one.node == node; })) return;
  NodeLink::Listener listener = listener_;
  listener.on_open = [this, node] { found(node); };
  links_.push_back({node, std::make_unique<NodeLink>(loop_, std::vector{node}, key_, listener, kSuccessor)});
}

// Called by the link that is found, which therefore stays.
void NodeSearch::found(const Endpoint& node) {
  const auto one = std::ranges::find_if(links_, [&](const Asked& asked) { return asked.node == node; });
  std::unique_ptr<NodeLink> link = std::move(one->link);
  end();
  found_(std::move(link));
}

bool NodeSearch::all_failed() const {
  return std::ranges::all_of(links_, [](const Asked& one) { return one.link->has_failed(); });
}

}  // namespace fleetrun::launch
