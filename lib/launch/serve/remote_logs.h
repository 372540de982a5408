// Shows the logs of ranks on other nodes, for `fleetrun logs` on the first node. It asks the run, which asks the nodes.
//
// In an elastic run, each change of the nodes gives the ranks new numbers and new logs. The file .nodes tells of the change.
// The logs of the attempts before it are shown to their ends, then those of the attempts after it.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/nodes/places.h"
#include "launch/serve/remote_log.h"

namespace fleetrun::launch {

class RemoteLogs {
 public:
  using ByNode = std::map<int, std::vector<RemoteLog>>;
  // The logs that are wanted while the ranks have these places, from this attempt on.
  using Choose = std::function<ByNode(const Placed& places, int attempt)>;
  struct Output {
    std::function<void(const std::string& text)> show;
    std::function<void(const std::string& line)> say;
  };

  // Without `places` the run has one node, and there is nothing to show. It begins with the present attempt.
  RemoteLogs(std::string folder, const std::optional<Placed>& places, Choose choose, Output output);

  bool empty() const;  // no log is wanted now

  // Shows the next piece of each log. False: there was nothing new. Prints a line when a node first fails to answer,
  // and when a node has left the run. Throws Error(usage) when the run refuses, Error(missing|io) when the run
  // does not answer.
  bool look();
  void look_to_present_ends();            // shows everything written so far
  bool is_over() const { return over_; }  // the run has ended, and waits for our last look()
  bool has_all() const;                   // the run is over, and its last piece was shown
  void finish();                          // shows last lines that have no line end
  // The logs that may have more: "/home/me/log/workerlog.1 on node 1 (10.0.0.2, beta)".
  std::vector<std::string> unread() const;

 private:
  struct Node {
    std::vector<RemoteLog> logs;
    bool complete = false;  // nothing more will come: the run may be gone at the next request
    bool said_silent = false;
  };
  // Attempts in which the ranks have the same places.
  struct Era {
    Placed places;
    std::map<int, Node> nodes;  // by their numbers in `places`

    bool is_complete() const;
  };

  void begin_era(const Placed& places, int attempt);
  void note_changes();
  bool look(const Placed& places, int number, Node& node);
  bool take(const JsonValue& answer, const Placed& places, int number, Node& node);
  void leave(const std::string& name, const std::string& logs, Node& node);

  std::string folder_;
  std::string follower_;  // our name in requests
  Choose choose_;
  Output output_;
  std::string stamp_;     // of .nodes when it was read
  std::deque<Era> eras_;  // the first one is shown now
  bool over_ = false;
};

// "/home/me/log/workerlog.1 on node 1 (10.0.0.2, beta)"
std::string place_of_log(const Placed& places, int node, int local_rank);

}  // namespace fleetrun::launch
