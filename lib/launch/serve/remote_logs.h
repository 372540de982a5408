// Shows the logs of ranks on other nodes, for `fleetrun logs` on the first node: it asks the run there, which asks the nodes.
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

  void add(int node, RemoteLog log) { nodes_[node].push_back(std::move(log)); }
  bool empty() const { return nodes_.empty(); }

  // Shows the next piece of each log. False: there was nothing. Throws Error(usage) when the run refuses, Error(missing|io) when it does not
  // answer. A node that does not answer is named once.
  bool look();
  void look_to_present_ends();
  bool is_over() const { return over_; }     // the run waits for us to take the ends of the logs
  bool has_all() const { return has_all_; }  // the run is over, and its last piece was shown
  void finish();                             // the starts of last lines

 private:
  struct Found {
    bool news = false;  // there is more
    bool over = false;  // the node says so of the run
  };

  Found look(std::vector<RemoteLog>& logs);
  Found take(const JsonValue& answer, std::vector<RemoteLog>& logs);

  std::string folder_;
  std::string follower_;  // by this the run knows us
  Show show_;
  std::map<int, std::vector<RemoteLog>> nodes_;  // the logs of each
  bool over_ = false, has_all_ = false;
  bool said_silent_ = false;
};

}  // namespace fleetrun::launch
