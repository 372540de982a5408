// Answers requests at the control socket of a node in a run over several nodes. The first node answers for the ranks of
// all nodes, every other node for its own. An answer that needs other nodes waits until each has answered, is lost, or
// has been silent for too long.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json/json_value.h"
#include "launch/cli/flags/rank_set.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"
#include "launch/serve/control_requests.h"
#include "launch/serve/control_server.h"
#include "launch/serve/merge_answers.h"

namespace fleetrun::launch {

class SharedControl {
 public:
  using Reply = ControlServer::Reply;

  SharedControl(EventLoop& loop, NodeSession& nodes, const RunControl& own);  // all outlive it
  SharedControl(const SharedControl&) = delete;
  SharedControl& operator=(const SharedControl&) = delete;

  void answer(const std::string& request, const std::string& sender, const Reply& reply);

  // The run is over: waits some seconds for followers of other nodes' logs to read the rest. It stops waiting for
  // followers that no longer ask.
  void finish();

 private:
  using Done = std::function<void(const NodeAnswers& answers)>;

  struct Follower {          // somebody who follows logs of other nodes
    TimePoint asked;         // when it last asked
    std::set<int> complete;  // nodes whose logs were read to the end after the run
  };

  void ask(const std::map<int, std::string>& requests, const std::string& sender, const Done& done);
  void ps(const std::string& sender, const Reply& reply);
  std::optional<std::string> objection_to(const RankSet& wanted) const;
  std::map<int, std::string> ranks_by_node(const RankSet& wanted) const;
  void signal(const JsonValue& request, const std::string& sender, const Reply& reply);
  std::optional<int> node_in(const JsonValue& request) const;
  void log(const JsonValue& request, const std::string& sender, const Reply& reply);
  void begin_answer(const JsonValue& request);
  void end_answer(const JsonValue& request, int node, bool has_more);

  EventLoop& loop_;
  NodeSession& nodes_;
  const RunControl own_;
  bool over_ = false;
  std::map<std::string, Follower> followers_;
};

}  // namespace fleetrun::launch
