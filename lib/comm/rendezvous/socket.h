// A blocking TCP connection on which every wait has a deadline. Errors are Error(temporary) and name the
// peer.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "comm/rendezvous/deadline.h"

namespace fleetrun::comm {

class Socket {
 public:
  // Tries again until the deadline when nobody listens there yet.
  static Socket connect(const Endpoint& peer, Deadline deadline);

  void send(std::string_view bytes, Deadline deadline);
  // Appends until `into` has `size` bytes, never more. False when the deadline passed first; what came stays.
  bool receive(std::string& into, std::size_t size, Deadline deadline);

  std::string local_address() const;  // of the interface that reaches the peer
  const Endpoint& peer() const { return peer_; }

 private:
  Socket(UniqueFd fd, Endpoint peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}
  bool wait_for(short events, Deadline deadline) const;

  UniqueFd fd_;
  Endpoint peer_;
};

}  // namespace fleetrun::comm
