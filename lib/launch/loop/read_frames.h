// The frames of the store protocol, as a PeerServer receives them from its peers.
#pragma once
#include <functional>
#include <string>

#include "base/run/store_protocol.h"
#include "launch/loop/peer_server.h"

namespace fleetrun::launch {

// Hands each whole message in `input` to `on_message`, as long as the server listens to the peer, and returns the bytes of a message that is
// not whole yet. Drops a peer that sends anything else, or more than a stranger may send before the server trusts it.
std::string read_frames(PeerServer& peers, PeerId id, std::string input,
                        const std::function<void(const store_protocol::Message&)>& on_message);

}  // namespace fleetrun::launch
