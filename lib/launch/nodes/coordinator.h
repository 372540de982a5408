// Decides for the whole run what the nodes do together: who takes part, when all start, what ended the run, and whether
// it restarts. A state machine on the first node, without sockets, processes or clock. The Supervisor of each node
// decides for the ranks there.
//
//   joining   --all have joined and fit together-----> preparing: each node holds its ports and names them
//   joining   --they do not fit, or --join_timeout---> over; with `without_missing`, preparing without the missing nodes
//   preparing --all are ready------------------------> running
//   preparing --a node fails or is lost--------------> over
//   running   --a node fails or is lost--------------> stopping: the other nodes end their ranks
//   running.. --all nodes have ended or are lost-----> over, or preparing again (--max_restart)
//
// In an elastic run, nodes may come and go:
//
//   joining   --enough have joined, --elastic_timeout-> preparing, without the others
//   preparing --a node is lost-----------------------> preparing the next attempt, without it
//   running   --a node has joined, and there is room-> stopping, then preparing the next attempt with it
//   stopping  --too few nodes are left---------------> gathering: wait for nodes to come (back)
//   gathering --enough have joined-------------------> preparing
//   gathering --elastic_timeout----------------------> over
//
// Another node's Coordinator goes on when the first node is lost (succession.h), and only with a quorum (quorum.h):
//
//   taking over --all nodes that are left have joined, or they had time, and enough have--> preparing
//   taking over --they had time, and are not a quorum; or --elastic_timeout, and too few-----> over
//
// For the same reason the first node ends the run when it has lost so many nodes that the others may go on without it.
//
// Nodes without a place wait: spare nodes, and those that come during an attempt. The number of the attempt is the
// generation of the membership: messages of earlier attempts are ignored.
//
// The cause is the failure that happened first, even when another node reports its failure earlier.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/error/error.h"
#include "launch/loop/clock.h"
#include "launch/loop/peer_server.h"
#include "launch/nodes/node_messages.h"
#include "launch/supervise/restart_policy.h"

namespace fleetrun::launch {

constexpr auto kNodeBeat = std::chrono::seconds(1);  // between two beats of a node

// This node takes over from a first node that is lost.
struct TakeOver {
  NodeFailure loss;
  Clock::duration detection{};  // from the last sign of life of the lost node until we knew
  int survivors = 1;            // nodes of the last attempt without the lost one
  EarlierRestarts restarts;     // before
  Terms terms;                  // that all nodes share
  Clock::duration meet = std::chrono::seconds(3);  // how long the others have to come
};

struct CoordinatorOptions {
  int nodes = 2;                       // that may join
  std::optional<int> least;            // that an attempt needs; none: all of them
  int spares = 0;                      // of `nodes`, those that wait without a place
  bool takes_in_while_running = true;  // a node that joins ends the attempt; false: it waits for a failure
  std::string run_id;
  std::vector<std::string> names;  // of the nodes, as the user wrote them; empty: unknown until they join
  std::vector<std::string> addresses = {};   // numeric, of the names of this node: others may reach it there
  std::string rival_mark = {};               // that the first nodes of one run have in common
  std::string key_file = "~/.fleetrun/key";  // on the first node
  Clock::duration join_timeout = std::chrono::minutes(10);
  Clock::duration note_every = std::chrono::seconds(10);       // pause between notes on missing nodes
  Clock::duration elastic_timeout = std::chrono::seconds(30);  // wait for more nodes when enough are there
  bool without_missing = false;  // after join_timeout, go on with the nodes that have joined
  RestartPolicy restart;
  std::optional<TakeOver> takes_over = std::nullopt;

  int most_running() const { return nodes - spares; }
  int least_running() const { return std::min(least.value_or(nodes), most_running()); }
  bool elastic() const { return least_running() < nodes; }
};

// How long no rank worked before an attempt, as the first node saw it.
struct StandStill {
  int attempt = 0;         // that began after it
  std::string why;         // what happened, in order: "rank 3 exited with code 1; then lost node 2 (...)"
  int nodes = 0;           // of the new attempt
  std::string first_node;  // that took over before it; "": the first node stayed
  Clock::duration detection{};  // from the failure, or the last sign of life of a lost node, until we knew
  Clock::duration stop{};       // until all ranks had ended, or until the nodes had met that take over
  Clock::duration pause{};      // --restart_delay, or what passed of it before another node was lost
  Clock::duration join{};       // until all nodes were ready
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
  // The connection to the node broke or fell silent. `last_heard` is a time on this node's clock. `ended`: the kernel of
  // the node has closed the connection in order, so its fleetrun has ended and cannot go on without us.
  Actions lost(PeerId peer, const std::string& why, TimePoint last_heard, TimePoint now, bool ended = false);
  // Somebody at this address began the handshake, but has another key.
  Actions refused(const std::string& address);
  Actions woke(TimePoint now);  // at wake_at()
  std::optional<TimePoint> wake_at() const;

  bool is_joining() const { return phase_ == Phase::joining; }
  bool over() const { return phase_ == Phase::over; }
  // The nodes that have not joined, in words: "node 1 (10.0.0.2), node 2 (10.0.0.3)", or "2 nodes of 3".
  std::string missing() const;
  Note note_of_refusal(const std::string& address) const;
  // Of the node that has this number in `placed`, which may be the places of an earlier attempt: its number is another one when nodes
  // before it have left. None: the node is lost, or has no place yet.
  std::optional<PeerId> peer_of(const Placed& placed, int node) const;
  // For report.json, in rank order, from every node that has reported. Complete when the run is over.
  JsonValue ranks() const;
  std::vector<std::string> roll_call() const;  // its lines, from the same nodes
  const std::vector<StandStill>& stand_stills() const { return stand_stills_; }

 private:
  enum class Phase { joining, taking_over, preparing, running, stopping, gathering, over };
  enum class State { joined, ready, running, ended, lost };

  struct Node {
    PeerId peer = 0;
    Join join;
    State state = State::joined;
    Ready ready;
    std::optional<NodeFailure> failure;
    std::optional<NodeFailure> departure;  // why the others go on without it once its ranks have ended
    std::optional<NodeFailure> loss;       // it was lost after its failure, or after its ranks had ended
    JsonValue ranks;
    std::vector<std::string> roll_call;
    EarlierWords earlier = {};
    std::optional<SignsOfLife> signs;  // none: the node has sent none in this attempt
    TimePoint ended;                   // when its ranks had ended
    bool finished = false;             // its ranks ended with 0 before they were asked to end
    std::optional<std::int64_t> step;  // the highest of its ranks; none: it is not known
    AttemptsSeen seen = {};
    bool is_new = true;                     // its fleetrun has not begun an attempt yet
    std::optional<int> first_attempt = {};  // in which its ranks started
  };

  // A node that could not join, and how long the others wait for another fleetrun of the same node.
  struct Unable {
    Failed failed;
    TimePoint until;
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

  static NodeFailure failure_of_nodes(ErrorKind kind, const std::string& line);
  // Who may join: coordinator_joining.cpp.
  std::optional<std::string> objection_to(PeerId peer, const Join& join) const;
  std::optional<std::string> objection_to_place(const Join& join) const;
  const Node* holder_of_place(const Join& join) const;  // null: nobody claims it
  const Node* first_here() const;                       // null: no node has joined
  Actions refuse(PeerId peer, const Join& join, const std::string& why);
  Actions begin_if_enough(TimePoint now);
  Actions place_without_missing(TimePoint now);
  Actions place(TimePoint now);
  std::optional<std::string> differences() const;
  const Node* holder_of_place_in_run(
      const Node& node) const;  // null: it claims no place that another node has
  bool has_room_for(const Node& node) const { return holder_of_place_in_run(node) == nullptr; }
  bool is_in_pause(TimePoint now) const;  // before a restart
  int candidates() const;
  int lacking() const;  // nodes that the next attempt needs, besides those that are left or wait
  void take_places();
  void add_missing();
  Actions tell_places(TimePoint now);
  Places places(TimePoint now) const;
  Actions tell_places_to_waiting(const std::vector<PeerId>& peers, TimePoint now) const;
  Tell note_for_waiting(const Node& node) const;
  std::optional<TimePoint> take_in_at() const;
  Actions take_in(TimePoint now);
  Actions go_on(const NodeFailure& failure, Clock::duration delay, TimePoint now);
  Actions go_on_if_enough(TimePoint now);
  Actions begin_next(Clock::duration delay, TimePoint now);
  Actions give_up_gathering();
  NodeFailure while_gathering(NodeFailure failure) const;
  static NodeFailure wish_between_attempts(int signal);
  Actions wake_while_joining(TimePoint now);
  // Taking over: coordinator_takeover.cpp.
  Actions take_over_if_all_have_come(TimePoint now);
  Actions wake_while_taking_over(TimePoint now);
  Actions tell_wait_for_nodes() const;
  Actions take_over(TimePoint now);
  Actions fail_while_joining(PeerId peer, const Failed& failed, TimePoint now);
  bool has_joined(const Failed& failed) const;  // another fleetrun of the same node
  Actions end_by_wish(int missing);             // nodes that have not come
  Actions fail_while_taking_over(PeerId peer, const NodeFailure& failure, TimePoint now);
  Actions end_while_taking_over(PeerId peer, const Ended& ended, TimePoint now);
  std::optional<MissingQuorum> missing_quorum() const;
  NodeFailure without_quorum(NodeFailure failure, const MissingQuorum& missing) const;

  Actions start(TimePoint now);
  std::vector<std::string> cannot_reach(const std::string& address) const;
  Endpoint place_for_ranks() const;
  Actions stop(const NodeFailure& failure, PeerId failed, TimePoint now);
  void set_failure(Node& node, const NodeFailure& failure);
  Actions lose(Node& node, const NodeFailure& failure, TimePoint now);
  Actions end_suspension_by(PeerId lost);
  bool ends_between_attempts(const Node& node, const Failed& failed) const;
  bool leaves(const Node& node, const NodeFailure& failure) const;
  Actions dismiss(Node& node, TimePoint now);
  bool is_first_waiting(PeerId peer) const;
  Actions conclude_if_all_ended(TimePoint now);
  Actions conclude(TimePoint now);
  Actions go_on_or_end(TimePoint now);
  const EarlierWords* earlier_words(int first, const NodeFailure& failure) const;  // null: there are none
  void add_earlier_error(int first, NodeFailure& failure);
  std::vector<Node*> unfit_newcomers(int first, const NodeFailure& failure);
  Actions go_on_without(const std::vector<Node*>& unfit, const NodeFailure& failure, TimePoint now);
  NodeFailure without_restart(NodeFailure failure) const;
  NodeFailure without_nodes(NodeFailure failure) const;
  std::vector<std::string> losses_after(const NodeFailure& failure) const;
  bool may_start_again(const NodeFailure& failure) const;
  bool lost_any() const;
  std::optional<int> first_to_fail() const;
  std::optional<std::int64_t> highest_step() const;
  Actions end(std::optional<NodeFailure> failure, std::optional<int> node, bool gave_up = false);
  SignsOfLife signs_beside(PeerId peer, TimePoint now) const;
  Actions tell_everybody(const FromFirst& message) const;  // also the nodes that wait
  Actions tell_members(const FromFirst& message) const;
  Actions tell_others(PeerId peer, const FromFirst& message) const;  // members but one
  bool all(State state) const;
  Node* find(PeerId peer);  // null: it is not a member, or is lost
  std::string name_of(const Node& node) const;
  std::string address_of(const Node& node) const;

  const CoordinatorOptions options_;
  RestartCounter restarts_;
  Phase phase_ = Phase::joining;
  int attempt_ = 0;
  const TimePoint began_;
  TimePoint next_note_, started_;
  std::optional<TimePoint> start_at_;      // a pause before a restart
  std::optional<TimePoint> suspended_;     // since when; no attempt starts meanwhile
  std::set<PeerId> suspended_by_;          // the members on which somebody did that
  std::vector<Node> waiting_;              // have joined and have no place, in order of arrival
  std::vector<Unable> unable_;             // in order of time
  std::vector<Node> nodes_;                // of the attempt, in rank order
  std::vector<AttemptsSeen> ended_nodes_;  // of nodes whose fleetrun has ended since the last start
  Terms terms_;                            // that all nodes share
  std::optional<TimePoint> begin_by_;      // joining: begins without the missing nodes; gathering: gives up
  std::optional<NodeFailure> wish_;    // taking over: somebody asked for the end, and not all nodes have come
  std::optional<NodeFailure> lost_;    // gathering: why nodes are missing
  std::optional<NodeFailure> ending_;  // what ended the attempt that another one follows
  bool taking_in_ = false;             // the attempt ends because a node has joined
  int asked_by_ = 0;              // the first signal by which somebody asked a node to end, in this attempt
  StandStill standing_;           // before the next attempt
  TimePoint stop_began_, ended_;  // of the attempt in which ranks last worked
  std::vector<StandStill> stand_stills_;
  std::set<std::string> refused_;         // addresses
  bool finished_ = false;                 // a rank has finished in this attempt
  std::optional<NodeFailure> not_begun_;  // why the run ended before all nodes had their places
};

}  // namespace fleetrun::launch
