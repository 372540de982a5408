// Which connection broke first when ranks fail together: one that lost its neighbour closes its other connections, so
// that most ranks only see a consequence. They tell each other through the store what each of them saw.
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

  bool operator==(const LostPeer&) const = default;
};

// What a rank that failed tells the others.
struct Failing {
  std::string where;  // "collective 5, all_reduce of 1000 f32 (sum)"
  std::optional<LostPeer> lost;
};
std::string pack(const Failing& failing);
Failing unpack_failing(const std::string& packed);

// By the collected states (packed; nothing of a rank that did not answer): follows who lost whom from our rank
// to the connection that broke by itself. "lost the connection to rank 2 on 10.0.0.2: no answer for 5 s"
std::string find_cause(const std::vector<std::optional<std::string>>& answers, const Failing& ours,
                       const Party& party);

}  // namespace fleetrun::comm
