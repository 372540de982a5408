// Asks several nodes at once, again and again, whether they have taken over the run of this node. The first that answers
// is the one.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/system/endpoint.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/node_link.h"

namespace fleetrun::launch {

class NodeSearch {
 public:
  using Found = std::function<void(std::unique_ptr<NodeLink> link)>;

  // `listener`: of the link that is found; its on_open is not called. All outlive the search.
  NodeSearch(EventLoop& loop, const NodeKey& key, NodeLink::Listener listener, Found found);
  NodeSearch(const NodeSearch&) = delete;
  NodeSearch& operator=(const NodeSearch&) = delete;

  void use(const NodeKey& key) { key_ = key; }  // from now on
  void ask(const Endpoint& node);               // does nothing when it is being asked
  void end() { links_.clear(); }                // asks nobody any more
  bool all_failed() const;                      // each node was asked at least once, and none answered

 private:
  struct Asked {
    Endpoint node;
    std::unique_ptr<NodeLink> link;
  };

  void found(const Endpoint& node);

  EventLoop& loop_;
  NodeKey key_;
  const NodeLink::Listener listener_;
  const Found found_;
  std::vector<Asked> links_;
};

}  // namespace fleetrun::launch
