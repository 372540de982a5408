// The frames of the store protocol, as a PeerServer receives them from its peers.
#pragma once
#include <functional>
#include <string>

#include "base/run/store_protocol.h"
#include "launch/loop/peer_server.h"

namespace fleetrun::launch {

// Passes each complete message in `input` to `on_message` while the server listens to the peer, and returns the bytes
// of an incomplete message. Drops a peer that sends anything else, or a stranger that sends too much.
std::string read_frames(PeerServer& peers, PeerId id, std::string input,
                        const std::function<void(const store_protocol::Message&)>& on_message);

}  // namespace fleetrun::launch
