// On the first node of a run: if the user wants to see ranks of other nodes, shows their logs on our stdout and stderr
// while the logs grow.
//
// Asks each node a few times a second for at most 64 KiB of new text. Of a log that grows faster it leaves out a part,
// and says so.
#pragma once
#include <memory>
#include <vector>

#include "launch/console/console.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_session.h"
#include "launch/run/run_plan.h"
#include "launch/serve/remote_log.h"

namespace fleetrun::launch {

class RemoteConsole {
 public:
  // `nodes` is null on a node that is alone. All outlive it.
  RemoteConsole(EventLoop& loop, const RunPlan& plan, NodeSession* nodes, Console& console);
  RemoteConsole(const RemoteConsole&) = delete;
  RemoteConsole& operator=(const RemoteConsole&) = delete;

  void begin_attempt(int attempt);
  // Call it when all ranks have ended. Takes at most 2 s to show the rest of their logs.
  void finish(const Patience& patience);

 private:
  struct Node {
    int number = 0;
    std::vector<RemoteLog> logs;
    bool asked = false, has_all = false;
  };

  RemoteLog make_log(int rank, bool errors, int attempt) const;
  void ask_all();
  void ask(Node& node);
  void take(int attempt, std::size_t place, const std::optional<std::string>& answer);
  void show(RemoteLog& log, const JsonValue& piece, int newest);

  EventLoop& loop_;
  const RunPlan& plan_;
  NodeSession* const nodes_;
  Console& console_;
  std::vector<Node> shown_;
  int attempt_ = -1;
  bool asks_ = false;
};

}  // namespace fleetrun::launch
