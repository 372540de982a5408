// Decides for the whole run what the nodes do together: who takes part, when all start, what ended the run, whether it starts again. A
// state machine on the first node, without sockets, processes or clock; each node's Supervisor decides for its own ranks.
//
//   joining   --all have joined and fit together-----> preparing: each node holds its ports and says which
//   preparing --all are ready------------------------> running
//   running   --a node fails or is lost--------------> stopping: the others are told to end their ranks
//   running.. --all nodes have ended or are lost-----> over, or preparing again (--max_restart)
//   any       --they do not fit, time has passed-----> over
//
// The first failure by time is the cause, whichever node tells of its own first.
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
  std::vector<std::string> names;  // of the nodes, as the user wrote them; none: known when they join
  Clock::duration join_timeout = std::chrono::minutes(10);
  Clock::duration note_every = std::chrono::seconds(10);  // who is missing
  RestartPolicy restart;
};

class Coordinator {
 public:
  struct Tell {
    std::vector<PeerId> to;
    FromFirst message;
  };
  struct Drop {  // when it has read what was sent
    PeerId peer = 0;
    std::string why;
  };
  using Actions = std::vector<std::variant<Tell, Drop>>;

  Coordinator(CoordinatorOptions options, TimePoint now);

  Actions on(PeerId peer, const FromNode& message, TimePoint now);
  // The connection to the node broke or is silent; `last_heard` on this clock.
  Actions lost(PeerId peer, const std::string& why, TimePoint last_heard, TimePoint now);
  // Somebody at this address began the handshake and has another key.
  Actions refused(const std::string& address);
  Actions woke(TimePoint now);  // at wake_at()
  std::optional<TimePoint> wake_at() const;

  bool over() const { return phase_ == Phase::over; }
  std::optional<PeerId> peer_of(int node) const;  // none: it is lost, or has no place yet
  // In report.json: of all nodes that told, in the order of the ranks. Complete when the run is over.
  JsonValue ranks() const;
  std::vector<std::string> roll_call() const;  // its lines, likewise

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
    std::optional<SignsOfLife> signs;  // none: it has told none in this attempt
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
  Actions handle(PeerId, const Answer&, TimePoint) { return {}; }  // NodeQuestions waits for it

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
  std::string missing() const;
  std::string name_of(const Node& node) const;

  const CoordinatorOptions options_;
  RestartCounter restarts_;
  Phase phase_ = Phase::joining;
  int attempt_ = 0;
  const TimePoint began_;
  TimePoint next_note_, started_;
  std::optional<TimePoint> start_at_;   // a pause before a restart
  std::optional<TimePoint> suspended_;  // since when; nothing starts meanwhile
  std::vector<Node> nodes_;             // in the order of arrival, then of their ranks
  std::set<std::string> refused_;       // addresses
  bool finished_ = false;               // a rank has, in this attempt
};

}  // namespace fleetrun::launch
