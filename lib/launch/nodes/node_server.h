// The first node's end of the connections to all nodes, including itself: lets in nodes that have the key, answers
// their beats, and does what the Coordinator decides. Like the store, it counts and drops connections of strangers.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/run/run_key.h"
#include "base/run/store_protocol.h"
#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/peer_server.h"
#include "launch/loop/timer.h"
#include "launch/nodes/coordinator.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/node_link.h"
#include "launch/nodes/node_questions.h"

namespace fleetrun::launch {

constexpr auto kNodeSilence = std::chrono::seconds(4);  // then a node counts as lost
constexpr std::string_view kCredential =
    "credential of MUNGE";  // a node with another key asks for it after the Challenge

// Twelve members, because the Coordinator knows neither peers nor clocks: both meet it here.
class NodeServer {
 public:
  // `listener` is already listening. `loop` outlives the server.
  NodeServer(EventLoop& loop, UniqueFd listener, const NodeKey& key, CoordinatorOptions options);
  ~NodeServer();
  NodeServer(const NodeServer&) = delete;
  NodeServer& operator=(const NodeServer&) = delete;

  const Coordinator& coordinator() const { return coordinator_; }
  std::uint64_t dropped() const { return dropped_; }  // connections without a valid handshake

  // Asks the node that has this number in `placed`. Calls `done` at once when the node is lost.
  void ask(const Placed& placed, int node, Ask ask, NodeQuestions::Done done,
           Clock::duration patience = NodeQuestions::kPatience);

  void listen_also(UniqueFd listener) { peers_.listen_also(std::move(listener)); }
  void stop_listening() { peers_.stop_listening(); }
  // Closes all connections without a word. The Coordinator decides nothing any more.
  void abandon();
  // The run is over: waits until each node has read that, or a deadline has passed.
  void finish();

 private:
  struct Node {
    Nonce nonce{};
    std::optional<store_protocol::Hello> hello;
    bool proven = false;
    bool has_credential = false;
    TimePoint last_heard;
  };

  void on_message(PeerId id, const store_protocol::Message& message);
  void shake_hands(PeerId id, Node& node, const store_protocol::Message& message);
  void give_credential(PeerId id, std::uint32_t question);
  void on_drop(const Peer& peer, const std::string& why);
  void look_for_silence();
  void perform(const Coordinator::Actions& actions);
  void send(const std::vector<PeerId>& to, std::string message);
  void wake_later();

  EventLoop& loop_;
  const NodeKey key_;
  const std::string_view kind_;  // kFirstNode or kSuccessor
  const std::string rival_;
  Coordinator coordinator_;
  NodeQuestions questions_;
  std::map<PeerId, Node> nodes_;
  std::uint64_t dropped_ = 0;
  bool abandoned_ = false;
  TimePoint looked_;
  Timer wake_, look_;
  PeerServer peers_;  // last: its callbacks use the members above
};

}  // namespace fleetrun::launch
