// Serves the peers of listening sockets: accepts them, reads from them, writes to them and drops them, and never
// blocks the loop. The PeerProtocol interprets their bytes.
//
// A peer is a stranger until the protocol trusts it. PeerLimits limits the number of strangers and their time. While
// that number is reached, new peers wait in the kernel's queue.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"

namespace fleetrun::launch {

using PeerId = std::uint64_t;  // counts from 1; never reused
constexpr std::string_view kPeerLeft =
    "it left";  // why a peer was dropped that closed its connection in order
using SharedBytes = std::shared_ptr<const std::string>;

struct Peer {
  PeerId id = 0;
  std::string name;  // for people
};

struct PeerLimits {
  std::size_t strangers = 64;                          // at a time
  Clock::duration patience = std::chrono::seconds(5);  // from a stranger's arrival until it is dropped
  std::size_t input = 64 * 1024;                       // most bytes of an incomplete message
};

struct PeerProtocol {
  // Returns the name of the new peer with this descriptor; none: refuse it.
  std::function<std::optional<std::string>(PeerId id, int fd)> welcome;
  // Gets all bytes from the peer that it has not used yet. Returns those that it still cannot use.
  std::function<std::string(const Peer& peer, std::string input)> on_input;
  // The server no longer reads from the peer. Called once per peer; may be null.
  std::function<void(const Peer& peer, const std::string& why)> on_drop = nullptr;
};

class PeerServer {
 public:
  PeerServer(EventLoop& loop, UniqueFd listener, PeerLimits limits, PeerProtocol protocol);
  ~PeerServer();  // closes all connections, without calling the protocol
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  // Each of these does nothing to a peer that is gone.
  void trust(PeerId id);                    // lifts its time limit
  void send(PeerId id, std::string bytes);  // drops a peer that leaves too many answers unread
  void send(PeerId id, SharedBytes bytes);  // the same bytes may go to many peers
  void drop(PeerId id, const std::string& why);
  void drop_when_sent(PeerId id, const std::string& why);  // it can still read everything sent to it

  bool is_trusted(PeerId id) const;
  bool listens_to(PeerId id) const;  // false for a peer that is gone or waits in drop_when_sent()
  std::size_t peers() const { return connections_.size(); }

  void listen_to(UniqueFd listener);    // instead of the sockets before; the peers stay
  void listen_also(UniqueFd listener);  // beside them
  void stop_listening();
  void drop_all(const std::string& why);
  void drop_unfinished(const std::string& why);  // drops strangers, and peers with unsent bytes
  void leave_open();  // forgets the peers; their connections stay open until this process ends

 private:
  struct Connection;

  void listen();
  void pause_listening();
  void accept(int listener);
  void read_from(PeerId id);
  void understand(PeerId id, std::string input);
  void write_to(PeerId id);
  void part_from(PeerId id, Connection& connection);
  void say_dropped(PeerId id, Connection& connection, const std::string& why);
  Connection* find(PeerId id);

  EventLoop& loop_;
  std::vector<UniqueFd> listeners_;
  const PeerLimits limits_;
  const PeerProtocol protocol_;
  Timer retry_;
  bool listening_ = false;
  std::map<PeerId, std::unique_ptr<Connection>> connections_;
  std::size_t strangers_ = 0;
  PeerId last_id_ = 0;
};

}  // namespace fleetrun::launch
