// The messages between the nodes of a run. Each is one frame of the store protocol, Set{key = its name, value = JSON},
// on a connection that began with the handshake of that protocol.
//
//   node                                          first node (the coordinator)
//   Join{who I am, my terms}                 -->
//   Beat{my time}                            -->   <-- Echo{that time, my time}          every second
//                                                  <-- Note{line, who is missing}        while nodes are missing
//                                                  <-- Place{your rank}, Places{all nodes}; or Over: they do not fit
//   Ready{attempt, my ports, my store, which addresses of the first node I reach}  -->
//                                                  <-- Start{attempt, all endpoints}
//   Signs{attempt, what my ranks did}        -->   <-- Signs{attempt, what the other nodes' ranks did}
//   Finished{attempt, my first rank}         -->   <-- Finished{attempt, rank}          to the others; only the first
//   Signalled{attempt, signal}               -->   <-- Signalled{attempt, signal}       to the others
//   Failed{attempt, when, what}              -->   <-- Stop{why}                        to the others
//   Hurry{attempt}                           -->   <-- Hurry{attempt}                   to the others
//   Ended{attempt, failure, my ranks}        -->
//                                                  <-- Again{attempt}, then Ready; or Over{the cause, its exit code}
//
// In an elastic run nodes come and go. Then Place and Places come again before Again, and a node that has joined during
// the run gets them and sends Ready for the attempt that Places names. Nodes that wait get Place{-1} and Places, so that
// they know who may take over. When the first node is lost, the others send Join to the node that takes over.
//
//                                                  <-- Ask{id, a request}                somebody asks about its ranks
//   Answer{id, text}                         -->
//
// Times are nanoseconds on the clock of the first node, unless a field says otherwise.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json/json_value.h"
#include "base/run/store_protocol.h"
#include "base/system/endpoint.h"
#include "launch/nodes/quorum.h"
#include "launch/supervise/signs_of_life.h"

namespace fleetrun::launch {

// What must be equal on all nodes: pairs of a name, such as "--max_restart" or "optimizer.learning_rate of the job
// file", and a value.
using Terms = std::vector<std::pair<std::string, std::string>>;

struct Join {
  std::string address;                       // at which other nodes reach this one
  std::string host;                          // this node's host name
  std::string logs;                          // absolute path of the log folder
  std::optional<int> node_rank;              // the rank that this node claims
  std::vector<std::vector<int>> device_ids;  // of each rank of this node
  Terms terms;
  bool coordinates = false;  // this node serves the others
  AttemptsSeen seen = {};    // in this run, under an earlier first node
};
struct Beat {
  std::int64_t sent = 0;  // on the node's own clock
};
// Where the ranks of the embedded runtime may meet.
struct StorePlace {
  Endpoint endpoint;                      // port 0: none
  std::vector<std::string> also_at = {};  // numeric addresses where it listens, too, at the same port
};
struct Ready {
  int attempt = 0;
  std::vector<std::uint16_t> ports;       // of the node's ranks
  std::uint16_t master_port = 0;          // used only from the first node
  StorePlace store;                       // used only from the first node
  std::vector<std::string> reaches = {};  // of Places::first_at; used only from the others
};
// Why an attempt ended on one node.
struct NodeFailure {
  std::int64_t at = 0;     // when it happened
  std::int64_t error = 0;  // `at` is off by at most this
  std::string cause;       // a name of exit_causes.def
  std::string line;        // one sentence: "rank 5 exited with code 3"
  std::string block;       // what the terminal shows: the line, evidence and last lines of the log
  int exit_code = 0;
  int signal = 0;           // stopped: the signal
  std::optional<int> rank;  // number in the whole run
  JsonValue evidence;       // as in report.json; null: none
};
struct Failed {
  int attempt = 0;
  NodeFailure failure;
  // Of a node that cannot join: which one it is.
  std::optional<int> node_rank = {};
  std::string host = {};
};
// An error that a rank of the node had written when the attempt failed elsewhere, or when all ranks of the node had ended with 0.
struct EarlierWords {
  std::string line;     // "rank 1 had written an error before: ..."
  std::string block;    // for the terminal
  JsonValue json;       // `earlier_error` of report.json
  std::int64_t at = 0;  // when the rank wrote it
  bool may_be_caught = false;
};
struct Ended {
  int attempt = 0;
  std::optional<NodeFailure>
      failure;      // none: all ranks of the node ended with 0, or another node's failure ended them
  JsonValue ranks;  // as in report.json
  std::vector<std::string> roll_call;  // its lines
  bool no_restart = false;             // somebody has asked this node to end, or its training is done
  int asked_by = 0;                    // the signal that did so
  bool finished = false;               // all ranks of the node ended with 0 before they were asked to end
  std::optional<std::int64_t> step;    // the highest that a rank of the node has done; none: it is not known
  EarlierWords earlier = {};           // "": none
};
// What the ranks do. From a node: its own ranks; from the first node: the ranks of all other nodes.
struct Signs {
  int attempt = 0;
  SignsOfLife of;
};
struct Finished {
  int attempt = 0;
  int rank = 0;  // number in the whole run
};
// fleetrun on one node received a signal that all nodes obey and that does not end the run.
struct Signalled {
  int attempt = 0;
  int signal = 0;
};
// Somebody does not want to wait any longer for the ranks to end: kill them.
struct Hurry {
  int attempt = 0;
};
struct Answer {
  std::int64_t id = 0;  // of the question
  std::string text;     // as the node's control socket answers
};
using FromNode = std::variant<Join, Beat, Ready, Signs, Finished, Signalled, Failed, Hurry, Ended, Answer>;

struct Echo {
  std::int64_t sent = 0, received = 0;
};
struct Note {
  std::string line;         // shown to the user; "": nothing to show
  std::string missing;      // the nodes that have not joined
  bool come_again = false;  // the connection ends, and the node tries again to join
};
struct NodePlace {
  std::string address, host, logs;
  std::vector<std::vector<int>> device_ids;
};
struct Place {
  int node_rank = 0;  // -1: the node waits, and the places that follow are those of the others
};
constexpr std::size_t kMostRestartAges = 1000;  // about 15 kB of a frame, which may have 1 MiB
struct Places {
  std::string run_id;
  std::vector<NodePlace> nodes;
  int attempt = 0;   // of which these are the nodes
  int restarts = 0;  // before it
  // ns since each of the newest restarts, for the node that may take over: those that --restart_window counts, at most
  // kMostRestartAges. None without the flag.
  std::vector<std::int64_t> restart_ages = {};
  // Numeric addresses at which the others may reach the first node. None: it has only one.
  std::vector<std::string> first_at = {};
};
// Place and Places together.
struct Placed {
  int node_rank = 0;
  std::string run_id;
  std::vector<NodePlace> nodes;
  int attempt = 0;
  int restarts = 0;
};
struct Start {
  int attempt = 0;
  std::vector<Endpoint> ranks;
  Endpoint master;
  Endpoint store;  // where the ranks of the embedded runtime meet; port 0: nowhere
};
struct Stop {
  std::string why;
  int exit_code = 0;
  bool call_roll = false;  // call the roll before stopping the ranks
  int signal = 0;          // that somebody sent to end the run; 0: none
  std::string cause = {};  // as in NodeFailure, like `rank`; "": the ranks end for no failure
  std::optional<int> rank = {};
};
struct Again {
  int attempt = 0;         // number of the next attempt
  std::int64_t delay = 0;  // ns until it starts
  int restarts = 0;        // before it; an attempt that begins because a node has joined is none
  std::optional<NodeFailure>
      failure;  // that ended the present attempt; its block has only the failures at the same time; none: no failure did
};
// The run is over. Without a failure, all ranks ended with 0.
struct Over {
  std::optional<NodeFailure> failure;
  std::optional<int> node;  // where it happened
  bool gave_up = false;     // restarting did not help (exit_codes.def)
};
// A request in the format of the control socket (control_requests.h).
struct Ask {
  std::int64_t id = 0;
  std::string request;
  std::string sender;  // who asks: "process 4711 on node 0 (10.0.0.1)"
};
using FromFirst =
    std::variant<Echo, Note, Place, Places, Start, Signs, Finished, Signalled, Stop, Hurry, Again, Over, Ask>;

// The message as a frame. Throws Error(protocol) when the frame is longer than the protocol allows.
std::string encode(const FromNode& message);
std::string encode(const FromFirst& message);

// Nothing when the frame is not one of these messages.
std::optional<FromNode> decode_from_node(const store_protocol::Set& frame);
std::optional<FromFirst> decode_from_first(const store_protocol::Set& frame);

// The places of all nodes as text, to be stored in a file.
std::string places_text(const Placed& placed);
std::optional<Placed> parse_places(const std::string& text);

}  // namespace fleetrun::launch
