// What the ranks say about a try to connect with each other, and which connection did not come about. Private to the Gloo backend.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

// A connection for which a rank waited in vain.
struct MissingLink {
  int peer = 0;
  std::string own_end, end_of_peer;  // "10.0.0.1:4711"

  bool operator==(const MissingLink&) const = default;
};

struct MeshState {
  bool proven = false;
  std::optional<MissingLink> missing;  // if this is why it is not proven
  std::string why;                     // it is not proven
  bool peer_left =
      false;  // of a missing link: the peer closed it, most likely because it misses another link

  bool operator==(const MeshState&) const = default;
};

std::string pack(const MeshState& state);
MeshState unpack_mesh_state(const std::string& packed);

// Why not all ranks are proven; nothing if they are. Names missing links first: the ranks that wait for others at their other connections only
// see that nothing comes. If only some of the missing links were closed by the peer, it names the others.
std::optional<std::string> describe_problem(const std::vector<MeshState>& states, const Party& party);

}  // namespace fleetrun::comm
