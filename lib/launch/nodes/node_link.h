// A node's end of its connection to the first node: tries to connect until the first node answers, sends a beat every
// second, and estimates the first node's clock. It never blocks the loop. When the first node has another key and does not give it to
// us through MUNGE, a callback of the loop throws Error(protocol).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/store_protocol.h"
#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

// Whom a node looks for, in the handshake. One that takes over from another first node answers only those that look for it, so that nobody joins
// the wrong run. A first node that waits asks other nodes whether they wait as the first node of the same run, which has a mark; they answer
// with a Note.
constexpr std::string_view kFirstNode = "nodes", kSuccessor = "nodes of a run that goes on",
                           kRival = "first nodes of ";

// A time of this node, converted to the clock of the first node.
struct SharedTime {
  std::int64_t at = 0;     // ns
  std::int64_t error = 0;  // ns; `at` is off by at most this
};

// More than ten members: the state of one connection, its buffers, and the measured offset of the other side's clock.
class NodeLink {
 public:
  struct Listener {
    std::function<void()> on_open;  // the first node has answered, and both sides have proven the key
    std::function<void(const FromFirst& message)> on_message;
    std::function<void(const std::string& why)> on_lost;  // called once, as the last callback
  };

  // `addresses` are those of the first node, and their hosts are numeric. The link tries them in turn; without any, it never opens. `loop`
  // outlives the link. `wanted`: kFirstNode, kSuccessor, or kRival with a mark.
  NodeLink(EventLoop& loop, std::vector<Endpoint> addresses, const NodeKey& key, Listener listener,
           std::string_view wanted = kFirstNode);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  void send(const FromNode& message);  // does nothing when the link is lost
  SharedTime shared(TimePoint time) const;
  std::string local_address() const;  // the one that reaches the first node; call it once the link is open
  const Endpoint& address() const;    // of the first node, in this try to connect; there must be one
  bool is_open() const { return state_ == State::open; }
  const std::string& problem() const { return problem_; }  // why the link is not open
  bool has_failed() const { return tries_ > 0; }           // to connect, at least once
  const RunKey& key() const { return key_.key; }           // perhaps the other end's
  TimePoint last_heard() const { return last_heard_; }     // or when we went on after we had stood still
  TimePoint last_received() const { return last_received_; }
  void close();  // stops reading and writing

 private:
  enum class State { connecting, shaking_hands, open, lost };

  void connect();
  bool may_be_elsewhere() const;
  void bound_try(Clock::duration patience, const std::string& problem);
  void retry(const std::string& problem);
  void on_connected();
  void read();
  void take_frames();
  void on_frame(const store_protocol::Message& message);
  bool is_proven_by(const store_protocol::Challenge& challenge) const;
  void take_key(const std::string& credential);
  void fail_over_key(const std::string& munge_problem);
  void prove(const store_protocol::Challenge& challenge);
  void hear(const FromFirst& message);
  void set_clock(const Echo& echo);
  void beat();
  void write();
  void lose(const std::string& why);

  EventLoop& loop_;
  const std::vector<Endpoint> addresses_;
  NodeKey key_;
  const Listener listener_;
  const std::string wanted_;
  State state_ = State::connecting;
  UniqueFd fd_;
  Timer timer_;  // for the next try to connect, later for the next beat
  Clock::duration pause_;
  store_protocol::Hello hello_;
  std::optional<store_protocol::Challenge> challenge_;  // of an end with another key, which we asked for
  std::string input_, output_;
  std::string problem_ = "no connection yet";
  TimePoint last_heard_, last_received_, last_beat_;

  struct Offset {  // the first node's clock minus ours
    std::int64_t ns = 0, error = INT64_MAX;
    TimePoint measured;
  };
  Offset offset_;
  int echoes_ = 0;
  int tries_ = 0;  // that failed
};

}  // namespace fleetrun::launch
