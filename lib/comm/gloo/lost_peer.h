// Finds the connection that broke first when ranks fail together. A rank that lost one peer closes its other
// connections, so most ranks see only a consequence. Through the store, each rank tells the others what it saw.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/peer_watch.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

struct LostPeer {
  int rank = 0;         // in the party
  std::string address;  // numeric
  PeerState state = PeerState::reset;
  bool full_packets_lost = false;  // see loses_full_packets()

  bool operator==(const LostPeer&) const = default;
};

// What a rank that failed tells the others.
struct Failing {
  std::string where;  // "collective 5, all_reduce of 1000 f32 (sum)"
  std::optional<LostPeer> lost;
};
std::string pack(const Failing& failing);
Failing unpack_failing(const std::string& packed);

// From the packed answers of all ranks (nothing for a rank that did not answer), follows who lost whom, from our rank
// to the connection that broke by itself. "lost the connection to rank 2 on 10.0.0.2: no answer for 5 s"
std::string find_cause(const std::vector<std::optional<std::string>>& answers, const Failing& ours,
                       const Party& party);

}  // namespace fleetrun::comm
