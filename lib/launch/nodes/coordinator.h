// Decides for the whole run what the nodes do together: who takes part, when all start, what ended the run, and whether
// it restarts. A state machine on the first node, without sockets, processes or clock. The Supervisor of each node
// decides for the ranks there.
//
//   joining   --all have joined and fit together-----> preparing: each node holds its ports and names them
//   joining   --they do not fit, or --join_timeout---> over
//   preparing --all are ready------------------------> running
//   preparing --a node fails or is lost--------------> over
//   running   --a node fails or is lost--------------> stopping: the other nodes end their ranks
//   running.. --all nodes have ended or are lost-----> over, or preparing again (--max_restart)
//
// The cause is the failure that happened first, even when another node reports its failure earlier.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/loop/peer_server.h"
#include "launch/nodes/node_messages.h"
#include "launch/supervise/restart_policy.h"

namespace fleetrun::launch {

struct CoordinatorOptions {
  int nodes = 2;
  std::string run_id;
  std::vector<std::string> names;  // of the nodes, as the user wrote them; empty: unknown until they join
  Clock::duration join_timeout = std::chrono::minutes(10);
  Clock::duration note_every = std::chrono::seconds(10);  // pause between notes on missing nodes
  RestartPolicy restart;
};

// More than ten members: the nodes, the attempt and its times, which each message may concern.
class Coordinator {
 public:
  struct Tell {
    std::vector<PeerId> to;
    FromFirst message;
  };
  struct Drop {  // once the peer has read everything sent to it
    PeerId peer = 0;
    std::string why;
  };
  using Actions = std::vector<std::variant<Tell, Drop>>;

  Coordinator(CoordinatorOptions options, TimePoint now);

  Actions on(PeerId peer, const FromNode& message, TimePoint now);
  // The connection to the node broke or fell silent. `last_heard` is a time on this node's clock.
  Actions lost(PeerId peer, const std::string& why, TimePoint last_heard, TimePoint now);
  // Somebody at this address began the handshake, but has another key.
  Actions refused(const std::string& address);
  Actions woke(TimePoint now);  // at wake_at()
  std::optional<TimePoint> wake_at() const;

  bool over() const { return phase_ == Phase::over; }
  // The nodes that have not joined, in words: "node 1 (10.0.0.2), node 2 (10.0.0.3)", or "2 nodes of 3".
  std::string missing() const;
  std::optional<PeerId> peer_of(int node) const;  // none: the node is lost, or has no place yet
  // For report.json, in rank order, from every node that has reported. Complete when the run is over.
  JsonValue ranks() const;
  std::vector<std::string> roll_call() const;  // its lines, from the same nodes

 private:
  enum class Phase { joining, preparing, running, stopping, over };
  enum class State { joined, ready, running, ended, lost };

  struct Node {
    PeerId peer = 0;
    Join join;
    State state = State::joined;
    Ready ready;
    std::optional<NodeFailure> failure;
    JsonValue ranks;
    std::vector<std::string> roll_call;
    std::optional<SignsOfLife> signs;  // none: the node has sent none in this attempt
  };

  Actions handle(PeerId peer, const Join& join, TimePoint now);
  Actions handle(PeerId peer, const Beat& beat, TimePoint now);
  Actions handle(PeerId peer, const Ready& ready, TimePoint now);
  Actions handle(PeerId peer, const Failed& failed, TimePoint now);
  Actions handle(PeerId peer, const Signs& signs, TimePoint now);
  Actions handle(PeerId peer, const Finished& finished, TimePoint now);
  Actions handle(PeerId peer, const Signalled& signalled, TimePoint now);
  Actions handle(PeerId peer, const Hurry& hurry, TimePoint now);
  Actions handle(PeerId peer, const Ended& ended, TimePoint now);
  Actions handle(PeerId, const Answer&, TimePoint) { return {}; }  // NodeQuestions handles it

  std::optional<std::string> objection_to(PeerId peer, const Join& join);
  Actions place(TimePoint now);
  std::optional<std::string> differences() const;
  Actions start(TimePoint now);
  Actions stop(const NodeFailure& failure, PeerId failed);
  Actions conclude_if_all_ended(TimePoint now);
  Actions conclude(TimePoint now);
  std::optional<int> first_to_fail() const;
  Actions end(std::optional<NodeFailure> failure, std::optional<int> node, bool gave_up = false);
  SignsOfLife signs_beside(PeerId peer) const;
  Actions tell_all(const FromFirst& message) const;
  Actions tell_others(PeerId peer, const FromFirst& message) const;
  bool all(State state) const;
  Node* find(PeerId peer);
  std::string name_of(const Node& node) const;

  const CoordinatorOptions options_;
  RestartCounter restarts_;
  Phase phase_ = Phase::joining;
  int attempt_ = 0;
  const TimePoint began_;
  TimePoint next_note_, started_;
  std::optional<TimePoint> start_at_;     // a pause before a restart
  std::optional<TimePoint> suspended_;    // since when; no attempt starts meanwhile
  std::vector<Node> nodes_;               // in order of arrival; once placed, in rank order
  std::set<std::string> refused_;         // addresses
  bool finished_ = false;                 // a rank has finished in this attempt
  std::optional<NodeFailure> not_begun_;  // why the run ended before all nodes had their places
};

}  // namespace fleetrun::launch
