// This node's part in a run over several nodes: joins the run, turns messages of the first node into events, and sends
// messages to it.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/run_key.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/address_book.h"
#include "launch/nodes/attempt_end.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/node_link.h"
#include "launch/nodes/node_messages.h"
#include "launch/nodes/node_search.h"
#include "launch/nodes/node_server.h"
#include "launch/nodes/quorum.h"
#include "launch/nodes/succession.h"
#include "launch/plan/membership.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/restart_policy.h"

namespace fleetrun::launch {

struct NodeSessionOptions {
  Membership members;
  NodeKey key;
  Join join;            // an empty `address` is filled in when the node connects
  std::string run_id;   // of the run, if this is the first node
  std::string command;  // starts each other node, too; "": each needs its own command
  Clock::duration join_timeout = std::chrono::minutes(10);
  Clock::duration elastic_timeout = std::chrono::seconds(30);
  bool takes_in_while_running = true;  // nodes that join during an attempt
  bool starts_others = false;          // this fleetrun has started the other nodes, and they end with it
  std::vector<std::string>
      possible_successors;    // numeric addresses; perhaps another node goes on with the run
  bool looks_for_run = true;  // of an elastic run that another node has taken over
  bool without_missing =
      false;              // after join_timeout, go on with those that have joined: their places have a host
  RestartPolicy restart;  // of the run
};

// More than 10 members: options and callbacks, and the answers of the first node.
class NodeSession {
 public:
  using Say = std::function<void(std::string_view line)>;

  // On the first node, listens for the others from now on. Throws Error(temporary) when the port is taken.
  NodeSession(EventLoop& loop, NodeSessionOptions options, Say say);
  ~NodeSession();
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

  // Runs the loop until this node has a place among nodes that fit together; then returns nothing. Otherwise returns why
  // the run ends: a signal, the loss of the front process (`front_fd` reaches its end then), or what the first node says.
  // Throws Error(temporary) when the first node does not answer in time, and Error(protocol) when it has another key.
  std::optional<NodeFailure> join(int front_fd);
  // join() returned nothing because all ranks finished without this node, which was a spare one.
  bool was_spare() const { return was_spare_; }
  // Somebody pressed Ctrl-Z during join(), and SIGCONT has not come.
  bool was_suspended() const { return was_suspended_; }
  // From a callback of the loop during join(): ends it as this signal does.
  void stop_waiting(int signal);
  // The same for a node that could not be started.
  void stop_waiting(const std::string& why, int exit_code);
  bool is_over() const { return over_; }  // as the first node decided
  // "waiting for node 1 (10.0.0.2)", or that this node is a spare. On another node than the first, nodes may have joined up to 10 s ago.
  std::string describe_wait() const;

  const Placed& placed() const { return *placed_; }
  // Between two attempts: placed() becomes what the first node has sent for the next attempt. False: nothing has.
  bool take_places();
  bool is_first() const { return placed_->node_rank == 0; }
  bool is_elastic() const { return coordinator_options().elastic(); }
  std::string own_address() const;  // numeric
  // The numeric addresses of all names by which other nodes may know this one, in the order in which it prefers them.
  std::vector<std::string> own_addresses() const;
  // Those of the first node's numeric addresses at which this node reaches it, if it has several. Blocks for up to a second.
  std::vector<std::string> reached_of_first() const;
  const RunKey& key() const { return options_.key.key; }  // of the run, once this node has joined
  std::string name_of_first() const;
  std::string own_name() const;  // "node 1 (10.0.0.2)"
  // The first node has told that nodes are still to join.
  bool waits_for_nodes() const { return is_connected() && !missing_.empty(); }

  // From now on messages of the first node become events: Stop, or losing the first node, becomes EndedElsewhere;
  // Start, Again and Over become NodesAnswered.
  void report_to(EventQueue& events, Say say);
  void send(const FromNode& message);
  SharedTime shared(TimePoint time) const { return link_->shared(time); }
  // The answer that NodesAnswered reports: Start, Again or Over. None: it has not arrived yet.
  std::optional<FromFirst> take_answer();

  // Sends what the ranks here do. The first node replies with what the ranks of the other nodes did.
  void tell_signs(const SignsOfLife& signs) { send(Signs{attempt_, signs}); }
  const SignsOfLife& signs_elsewhere() const { return signs_elsewhere_; }

  // Somebody who has stopped the run does not want to wait until the other nodes have heard of it, after the loss of the first one.
  void stop_looking();

  // Answers the questions of the first node to this node.
  using Answerer = std::function<std::string(const std::string& request, const std::string& sender)>;
  void answer_with(Answerer answerer) { answerer_ = std::move(answerer); }
  // On the first node: asks the node that has this number in placed(), also this one.
  void ask(int node, const std::string& request, const std::string& sender, NodeQuestions::Done done,
           Clock::duration patience = NodeQuestions::kPatience);

  // On the first node: later nodes find nobody at the meeting point, and try again.
  void stop_listening() { server_->stop_listening(); }
  bool is_connected() const { return link_->is_open(); }  // to the first node

  // On the first node: those of all nodes, for report.json.
  JsonValue ranks() const;
  std::vector<std::string> roll_call() const;
  std::vector<StandStill> stand_stills() const;  // likewise
  // Ends the session after the run. The first node waits until all others have read that the run is over; the others
  // keep answering until the first node has shown the ends of their logs.
  void finish();
  // This node cannot go on: tells the others why, and ends the session. Later calls do nothing.
  void leave(const NodeFailure& failure);
  // The first node cannot go on, and another node may take over: leaves the run to the others, and take_answer() returns its end here. False:
  // no other node may take over, so the run has to end on all nodes.
  bool hand_over(const NodeFailure& failure);

 private:
  CoordinatorOptions coordinator_options() const;
  NodeLink::Listener listener();
  void link_to_first();
  void look_for_run_that_goes_on();
  bool may_search() const;  // for another node that goes on with an elastic run
  void join_again();
  void come_again();
  void serve();
  void look_for_rivals();
  std::string rival_mark() const;
  void on_rival(const Endpoint& other, const std::string& own_address, bool waits);
  bool is_spare() const;
  void on_open();
  void take_key_of_first();
  void on_places(const Places& places);
  void on_message(const FromFirst& message);
  void on_lost(const std::string& why);
  NodeFailure loss_of_first(const std::string& why) const;
  NodeFailure with_earlier_failure(const NodeFailure& loss) const;
  bool ends_for_good() const;  // the ranks end, and they are not to start again
  void take_signal(int signal);
  void tell_run(Event event);
  void answer(FromFirst message);
  void reply_to(const Ask& ask);
  std::string describe_wait_for_first() const;
  void run_until(Clock::duration patience, const std::function<bool()>& done);

  // Where the other nodes may be: node_addresses.cpp.
  std::string place_of_first() const;
  std::vector<Endpoint> possible_successors() const;
  std::vector<Endpoint> endpoints_of_others() const;  // of the other nodes of --ips
  std::vector<Endpoint> endpoints_of(const NodePlace& node) const;
  Endpoint own_endpoint(const Placed& placed) const;
  void ask_others();
  void listen_at_others(const std::vector<std::string>& addresses, const Endpoint& first);
  void keep_up_addresses();
  void use_new_addresses();

  // Taking over from a lost first node: node_takeover.cpp.
  struct TakingOver {
    NodeFailure loss;
    Clock::duration detection{};
    Placed last;  // places, with the lost node as the first
    Succession succession;
    bool has_found = false;  // a node that takes over, perhaps this one
    int looks_alone = 0;     // while this node serves and has no connection to itself
    std::vector<FromNode> unsent;
  };
  bool may_be_taken_over() const;
  bool others_may_go_on() const;  // without the first node
  bool may_restart_after_loss() const;
  const NodeFailure* unheard_wish() const;  // null: there is none
  void begin_taking_over(const std::string& why);
  void look_for_successor();
  bool serve_as_successor();
  void stop_serving();
  void join_found(std::unique_ptr<NodeLink> link);
  void go_on_looking(const std::string& why);
  void give_up_looking();

  EventLoop& loop_;
  NodeSessionOptions options_;
  Say say_;
  EventQueue* events_ = nullptr;
  Answerer answerer_;
  std::unique_ptr<NodeServer> server_;  // on the first node
  std::unique_ptr<NodeLink> link_;
  int node_rank_ = 0;  // from Place
  std::optional<Placed> placed_, next_places_;
  std::optional<Placed> known_;        // the latest places, also when this node has none: node_rank -1
  std::vector<std::string> first_at_;  // as in Places
  EarlierRestarts restarts_;           // before them
  AttemptsSeen seen_;
  AddressBook book_;
  NodeSearch search_;
  Timer look_;                                     // for a successor, or again for the first node
  bool comes_again_ = false;                       // the first node has asked for that
  std::vector<std::unique_ptr<NodeLink>> rivals_;  // on the first node, while it waits for the others
  Timer rival_wait_;                               // before this node ends because of one
  std::optional<TakingOver> taking_over_;
  AttemptEnd ending_;                        // of the ranks of this attempt
  bool leaving_ = false;                     // this node cannot go on
  std::deque<FromFirst> answers_;            // oldest first
  std::optional<NodeFailure> interruption_;  // what ended the wait for the others
  std::string missing_;                      // the nodes that this node waits for, from Note
  int attempt_ = 0;
  SignsOfLife signs_elsewhere_;
  bool was_spare_ = false, was_suspended_ = false;
  bool over_ = false;  // the first node said so, or is lost
};

}  // namespace fleetrun::launch
