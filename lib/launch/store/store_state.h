// What the store decides: which peers it lets in, which values it keeps, which peer gets which answer. No sockets and no clock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/run/run_key.h"
#include "base/run/store_protocol.h"

namespace fleetrun::launch {

class StoreState {
 public:
  using PeerId = std::uint64_t;

  struct Send {
    PeerId to = 0;
    store_protocol::Message message;
  };
  struct Drop {  // close it, once what was sent before has gone out
    PeerId peer = 0;
    std::string why;
  };
  using Actions = std::vector<std::variant<Send, Drop>>;

  static constexpr std::size_t kMaxStoredBytes = 64 << 20;  // keys and values; a rendezvous needs kilobytes

  StoreState(RunKey key, std::string run_id, int attempt, int world_size);

  // Forgets keys and ranks; the caller closes all connections and calls gone() for each.
  void begin_attempt(int attempt, int world_size);

  void connected(PeerId peer, const Nonce& our_nonce);  // the nonce: fresh for each
  Actions on(PeerId peer, const store_protocol::Message& message);
  void gone(PeerId peer);

  bool proven(PeerId peer) const;
  std::vector<int> missing_ranks() const;

 private:
  struct Peer {
    Nonce nonce{};
    std::optional<store_protocol::Hello> hello;
    bool proven = false;
    std::optional<store_protocol::Get> waiting;  // a later request takes its place
  };

  Actions on_hello(PeerId id, Peer& peer, const store_protocol::Hello& hello);
  Actions on_proof(PeerId id, Peer& peer, const store_protocol::Proof& proof);
  Actions on_set(PeerId id, const store_protocol::Set& set);
  Actions on_request(PeerId id, Peer& peer, const store_protocol::Message& message);
  std::optional<std::string> objection_to(PeerId id, const store_protocol::Identity& identity) const;

  const RunKey key_;
  const std::string run_id_;
  int attempt_;
  int world_size_;
  std::map<PeerId, Peer> peers_;
  std::set<int> joined_;
  std::map<std::string, std::string> values_;
  std::size_t stored_bytes_ = 0;
};

}  // namespace fleetrun::launch
