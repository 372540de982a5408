// What the nodes of a run say to each other. Each message is one frame of the store protocol, Set{key = its name, value = JSON}, on a
// connection that began with the handshake of that protocol.
//
//   node                                          first node (the coordinator)
//   Join{who I am, my terms}                 -->
//   Beat{my time}                            -->   <-- Echo{the same, the time here}     every second, both ways
//                                                  <-- Note{line}                        while others are missing
//                                                  <-- Place{your rank}, Places{all nodes}; or Over, when the nodes do not fit
//   Ready{attempt, my ports}                 -->
//                                                  <-- Start{attempt, all endpoints}
//   Signs{attempt, what my ranks did}        -->   <-- Signs{attempt, what the others' did}
//   Finished{attempt, my first rank}         -->   <-- Finished{attempt, rank}          the first of the run, to the others
//   Signalled{attempt, signal}               -->   <-- Signalled{attempt, signal}       to the others
//   Failed{attempt, when, what}              -->   <-- Stop{why}                        to the others
//   Hurry{attempt}                           -->   <-- Hurry{attempt}                   to the others
//   Ended{attempt, when, what, my ranks}     -->
//                                                  <-- Again{attempt}, then Ready; or Over{the cause, its exit code}
//
//                                                  <-- Ask{id, a request}                while somebody wants to see its ranks
//   Answer{id, text}                         -->
//
// Times are nanoseconds on the clock of the first node.
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
#include "launch/supervise/signs_of_life.h"

namespace fleetrun::launch {

// What must be equal on all nodes: names, such as "--max_restart" or "optimizer.learning_rate of job.json", and values.
using Terms = std::vector<std::pair<std::string, std::string>>;

struct Join {
  std::string address;                       // of the node, as the others reach it
  std::string host;                          // its name
  std::string logs;                          // its log folder, a whole path
  std::optional<int> node_rank;              // that it claims
  std::vector<std::vector<int>> device_ids;  // of each of its ranks
  Terms terms;
};
struct Beat {
  std::int64_t sent = 0;  // on the node's own clock
};
struct Ready {
  int attempt = 0;
  std::vector<std::uint16_t> ports;  // of the node's ranks
  std::uint16_t master_port = 0;     // counts on the first node
  Endpoint store;                    // counts on the first node; port 0: none
};
// Why an attempt ended on one node.
struct NodeFailure {
  std::int64_t at = 0;     // when
  std::int64_t error = 0;  // of that time, at most
  std::string cause;       // a name of exit_causes.def
  std::string line;        // one sentence: "rank 5 exited with code 3"
  std::string block;       // the same with evidence and last lines, as the terminal shows it
  int exit_code = 0;
  std::optional<int> rank;  // over all nodes
  JsonValue evidence;       // members of report.json; null: none
};
struct Failed {
  int attempt = 0;
  NodeFailure failure;
};
struct Ended {
  int attempt = 0;
  std::optional<NodeFailure>
      failure;      // none: all its ranks ended with 0, or another node's failure ended them
  JsonValue ranks;  // as in report.json
  std::vector<std::string> roll_call;  // its lines
};
// What the ranks do, on the one side of this connection.
struct Signs {
  int attempt = 0;
  SignsOfLife of;
};
struct Finished {
  int attempt = 0;
  int rank = 0;  // over all nodes
};
// Somebody sent fleetrun a signal that all nodes obey while the run goes on.
struct Signalled {
  int attempt = 0;
  int signal = 0;
};
// Somebody does not want to wait any more for ranks that are stopped.
struct Hurry {
  int attempt = 0;
};
struct Answer {
  std::int64_t id = 0;  // of the question
  std::string text;     // what the control socket of the node would answer
};
using FromNode = std::variant<Join, Beat, Ready, Signs, Finished, Signalled, Failed, Hurry, Ended, Answer>;

struct Echo {
  std::int64_t sent = 0, received = 0;
};
struct Note {
  std::string line;  // for people
};
struct NodePlace {
  std::string address, host, logs;
  std::vector<std::vector<int>> device_ids;
};
struct Place {
  int node_rank = 0;
};
struct Places {
  std::string run_id;
  std::vector<NodePlace> nodes;
};
// Both together.
struct Placed {
  int node_rank = 0;
  std::string run_id;
  std::vector<NodePlace> nodes;
};
struct Start {
  int attempt = 0;
  std::vector<Endpoint> ranks;
  Endpoint master;
  Endpoint store;
};
struct Stop {
  std::string why;
  int exit_code = 0;
  bool call_roll = false;  // before
};
struct Again {
  int attempt = 0;         // the next one
  std::int64_t delay = 0;  // until it starts
};
// The run is over. Without a failure all ranks ended with 0.
struct Over {
  std::optional<NodeFailure> failure;
  std::optional<int> node;  // where it happened
  bool gave_up = false;     // the restarts did not help
};
// A request as at the control socket (control_requests.h).
struct Ask {
  std::int64_t id = 0;
  std::string request;
  std::string sender;  // who wants to know: "process 4711 on node 0 (10.0.0.1)"
};
using FromFirst =
    std::variant<Echo, Note, Place, Places, Start, Signs, Finished, Signalled, Stop, Hurry, Again, Over, Ask>;

// A frame as it is sent. Throws Error(protocol) when it would be longer than the protocol allows.
std::string encode(const FromNode& message);
std::string encode(const FromFirst& message);

// Nothing when it is none of these messages.
std::optional<FromNode> decode_from_node(const store_protocol::Set& frame);
std::optional<FromFirst> decode_from_first(const store_protocol::Set& frame);

// The places of all nodes as a text, for a file.
std::string places_text(const Placed& placed);
std::optional<Placed> parse_places(const std::string& text);

}  // namespace fleetrun::launch
