// This node's part in a run over several nodes: joins, then passes on what the first node says as events, and what happens here to it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/run/run_key.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/node_link.h"
#include "launch/nodes/node_messages.h"
#include "launch/nodes/node_server.h"
#include "launch/plan/membership.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/restart_policy.h"

namespace fleetrun::launch {

struct NodeSessionOptions {
  Membership members;
  RunKey key;
  Join join;            // `address` is filled in where it is not known
  std::string run_id;   // that the run has if this is the first node
  std::string command;  // that starts the other nodes, too; "": each has its own
  Clock::duration join_timeout = std::chrono::minutes(10);
  RestartPolicy restart;  // of the run
};

// Over 10 members: what the session was given and what it was told lie side by side.
class NodeSession {
 public:
  using Say = std::function<void(std::string_view line)>;

  // On the first node, waits for the others from now on. Throws Error(temporary) when the meeting point is taken.
  NodeSession(EventLoop& loop, NodeSessionOptions options, Say say);
  ~NodeSession();
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

  // Runs the loop until all nodes have joined and fit together. `front_fd` reaches its end when nobody waits for us any more. Throws
  // Error(temporary|protocol), or one with the code of the signal that ended the wait.
  const Placed& join(int front_fd);

  const Placed& placed() const { return *placed_; }
  bool is_first() const { return placed_->node_rank == 0; }
  const RunKey& key() const { return options_.key; }
  std::string name_of_first() const;
  std::string own_name() const;  // "node 1 (10.0.0.2)"

  // From now on: Stop and the loss of the first node become EndedElsewhere, what is waited for becomes NodesAnswered.
  void report_to(EventQueue& events, Say say);
  void send(const FromNode& message) { link_->send(message); }
  SharedTime shared(TimePoint time) const { return link_->shared(time); }
  // What was waited for: Start, Again or Over.
  std::optional<FromFirst> take_answer() { return std::exchange(answer_, std::nullopt); }

  // What the ranks here do, and what those of the other nodes did when the first node was last asked.
  void tell_signs(const SignsOfLife& signs) { send(Signs{attempt_, signs}); }
  const SignsOfLife& signs_elsewhere() const { return signs_elsewhere_; }

  // What this node answers when the first one asks it something.
  using Answerer = std::function<std::string(const std::string& request, const std::string& sender)>;
  void answer_with(Answerer answerer) { answerer_ = std::move(answerer); }
  // On the first node: asks another one.
  void ask(int node, const std::string& request, const std::string& sender, NodeQuestions::Done done);

  // On the first node: of all nodes, for report.json.
  JsonValue ranks() const;
  std::vector<std::string> roll_call() const;
  // All have read that the run is over. The other nodes answer until the first one has shown the ends of their logs.
  void finish();
  // This node cannot go on: the others hear why, and the run is over for it. Only the first call counts.
  void leave(const NodeFailure& failure);

 private:
  void serve();
  void on_open();
  void on_message(const FromFirst& message);
  void on_lost(const std::string& why);
  void tell_run(Event event);
  void answer(FromFirst message);
  void reply_to(const Ask& ask);
  void run_until(Clock::duration patience, const std::function<bool()>& done);

  EventLoop& loop_;
  NodeSessionOptions options_;
  Say say_;
  EventQueue* events_ = nullptr;
  Answerer answerer_;
  std::unique_ptr<NodeServer> server_;  // on the first node
  std::unique_ptr<NodeLink> link_;
  int node_rank_ = 0;  // as Place said
  std::optional<Placed> placed_;
  std::optional<FromFirst> answer_;
  int attempt_ = 0;
  SignsOfLife signs_elsewhere_;
  bool over_ = false;  // as the first node said, or because it is lost
};

}  // namespace fleetrun::launch
