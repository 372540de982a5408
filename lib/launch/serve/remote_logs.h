// Shows the logs of ranks on other nodes, for `fleetrun logs` on the first node. It asks the run, which asks the nodes.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/serve/remote_log.h"

namespace fleetrun::launch {

class RemoteLogs {
 public:
  using Show = std::function<void(const std::string& text)>;

  RemoteLogs(std::string folder, Show show);

  void add(int node, RemoteLog log) { nodes_[node].logs.push_back(std::move(log)); }
  bool empty() const { return nodes_.empty(); }

  // Shows the next piece of each log. False: there was nothing new. Prints a warning the first time that a node does
  // not answer. Throws Error(usage) when the run refuses, Error(missing|io) when the run does not answer.
  bool look();
  void look_to_present_ends();            // shows everything written so far
  bool is_over() const { return over_; }  // the run has ended, and waits for our last look()
  bool has_all() const;                   // the run is over, and its last piece was shown
  void finish();                          // shows last lines that have no line end

 private:
  struct Node {
    std::vector<RemoteLog> logs;
    bool complete = false;  // the run is over, and had nothing new: it may be gone at the next request
  };

  bool look(Node& node);
  bool take(const JsonValue& answer, Node& node);

  std::string folder_;
  std::string follower_;  // our name in requests
  Show show_;
  std::map<int, Node> nodes_;  // by rank
  bool over_ = false;
  bool said_silent_ = false;
};

}  // namespace fleetrun::launch
