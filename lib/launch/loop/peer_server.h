// Serves the peers of one listening socket: accepts them, reads, writes and drops them, and never blocks the loop. The
// protocol on top says what their bytes mean.
//
// A peer is a stranger until the protocol trusts it. Strangers are few and have little time; while there is no room for
// another one, peers wait in the kernel's queue.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"

namespace fleetrun::launch {

using PeerId = std::uint64_t;  // from 1, never used again
using SharedBytes = std::shared_ptr<const std::string>;

struct Peer {
  PeerId id = 0;
  std::string name;  // for people
};

struct PeerLimits {
  std::size_t strangers = 64;                          // at a time
  Clock::duration patience = std::chrono::seconds(5);  // from the coming of a stranger to its drop
  std::size_t input = 64 * 1024;                       // bytes that a peer may say without being understood
};

struct PeerProtocol {
  // The name of a peer that has come with this descriptor; none: it is not let in.
  std::function<std::optional<std::string>(PeerId id, int fd)> welcome;
  // What a peer has said and was not yet understood. Returns what is not yet understood now.
  std::function<std::string(const Peer& peer, std::string input)> on_input;
  // Nothing is read from the peer any more. Called once for each; may be empty.
  std::function<void(const Peer& peer, const std::string& why)> on_drop = nullptr;
};

class PeerServer {
 public:
  PeerServer(EventLoop& loop, UniqueFd listener, PeerLimits limits, PeerProtocol protocol);
  ~PeerServer();  // closes all connections, and calls nobody
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  // Each of these does nothing to a peer that is gone.
  void trust(PeerId id);                    // it has as much time as it wants
  void send(PeerId id, std::string bytes);  // drops a peer that leaves too many answers unread
  void send(PeerId id, SharedBytes bytes);  // the same bytes may go to many peers
  void drop(PeerId id, const std::string& why);
  void drop_when_sent(PeerId id, const std::string& why);  // it can still read all that was sent

  bool is_trusted(PeerId id) const;
  bool listens_to(PeerId id) const;  // false for one that is gone or will be dropped when all is sent
  std::size_t peers() const { return connections_.size(); }

  void stop_listening();
  void drop_all(const std::string& why);
  void drop_unfinished(
      const std::string& why);  // strangers, and peers that have not been sent everything yet
  void leave_open();            // forgets the peers; their connections end with this process

 private:
  struct Connection;

  void listen();
  void pause_listening();
  void accept();
  void read_from(PeerId id);
  void understand(PeerId id, std::string input);
  void write_to(PeerId id);
  void part_from(PeerId id, Connection& connection);
  void say_dropped(PeerId id, Connection& connection, const std::string& why);
  Connection* find(PeerId id);

  EventLoop& loop_;
  UniqueFd listener_;
  const PeerLimits limits_;
  const PeerProtocol protocol_;
  Timer retry_;
  bool listening_ = false;
  std::map<PeerId, std::unique_ptr<Connection>> connections_;
  std::size_t strangers_ = 0;
  PeerId last_id_ = 0;
};

}  // namespace fleetrun::launch
