#include "fuzz/store_target.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "base/run/run_key.h"
#include "base/run/store_protocol.h"
#include "launch/store/store_state.h"

namespace fleetrun::fuzz {
namespace {

using namespace store_protocol;
using launch::StoreState;
using PeerId = StoreState::PeerId;

constexpr int kRanks = 3;
constexpr std::uint32_t kAttempt = 4;
constexpr PeerId kPeers = 6;

void must(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "broken: {}\n", what);
  std::abort();
}

// Takes numbers and texts from the input; zeros when it is used up.
class Orders {
 public:
  explicit Orders(std::string_view bytes) : rest_(bytes) {}
  bool left() const { return !rest_.empty(); }
  std::uint8_t number() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::string text() {
    const std::size_t length = number();
    std::string taken(rest_.substr(0, length));
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

// The store, what it has been told by those who hold the key, and what it says.
class Conversation {
 public:
  void run(Orders orders) {
    while (orders.left()) {
      const std::uint8_t order = orders.number();
      const PeerId peer = order / 8U % kPeers;
      switch (order % 8) {
        case 0:
          connect(peer, orders.number());
          break;
        case 1:
          leave(peer);
          break;
        case 2:
          if (const auto message = decode(orders.text())) say(peer, *message);
          break;
        case 3:
          say(peer, Hello{.version = kVersion, .identity = identity(orders), .nonce = {}});
          break;
        case 4:
          prove(peer);
          break;
        case 5:
          say(peer, Set{orders.number(), orders.text(), orders.text()});
          break;
        case 6:
          say(peer, Get{orders.number(), orders.text()});
          break;
        default:
          say(peer, Look{orders.number(), orders.text()});
          break;
      }
    }
  }

 private:
  struct Peer {
    Nonce nonce{};
    std::optional<Hello> hello;
    bool may_be_proven = false;  // it has said a right proof, and nothing has refused it
  };

  static Identity identity(Orders& orders) {
    const std::uint8_t oddity = orders.number();
    return {.run_id = oddity % 8 == 1 ? "another" : "run",
            .attempt = oddity % 8 == 2 ? kAttempt - 1 : kAttempt,
            .rank = static_cast<std::uint32_t>(oddity / 8),
            .world_size = oddity % 8 == 3 ? 7U : kRanks};
  }

  void connect(PeerId peer, std::uint8_t nonce) {
    leave(peer);
    peers_[peer].nonce.fill(nonce);
    state_.connected(peer, peers_[peer].nonce);
  }

  void leave(PeerId peer) {
    if (peers_.erase(peer) != 0) state_.gone(peer);
    must(!state_.proven(peer), "a peer that is gone is proven");
  }

  void prove(PeerId peer) {
    const auto found = peers_.find(peer);
    if (found == peers_.end() || !found->second.hello) return say(peer, Proof{});
    found->second.may_be_proven = true;
    say(peer, Proof{proof_of_rank(key_, *found->second.hello, found->second.nonce)});
  }

  void say(PeerId from, const Message& message) {
    const bool was_proven = state_.proven(from);
    const auto found = peers_.find(from);
    if (const auto* hello = std::get_if<Hello>(&message); hello != nullptr && found != peers_.end())
      if (!found->second.hello && hello->version == kVersion) found->second.hello = *hello;
    const auto* set = std::get_if<Set>(&message);
    if (was_proven && set != nullptr) values_[set->key] = set->value;
    const auto actions = state_.on(from, message);
    must(found != peers_.end() || actions.empty(), "somebody unknown gets an answer");
    must(actions.size() <= 2 + kPeers, "one message has many answers");
    for (const auto& action : actions)
      std::visit([&](const auto& each) { check(from, message, was_proven, each); }, action);
    must(!state_.proven(from) || (found != peers_.end() && found->second.may_be_proven),
         "a peer is proven without the key");
    for (const auto& action : actions)
      if (const auto* drop = std::get_if<StoreState::Drop>(&action)) leave(drop->peer);
    check_ranks();
  }

  void check(PeerId from, const Message& asked, bool was_proven, const StoreState::Send& send) {
    must(peers_.count(send.to) != 0, "an answer goes to somebody who is not there");
    must(encode(send.message).size() <= kLengthBytes + kMaxFrame, "an answer does not fit in a frame");
    const bool of_the_store = std::holds_alternative<Value>(send.message) ||
                              std::holds_alternative<Done>(send.message) ||
                              std::holds_alternative<Absent>(send.message);
    must(!of_the_store || state_.proven(send.to), "a stranger gets something of the store's");
    must(send.to == from || (was_proven && std::holds_alternative<Set>(asked)), "somebody else is answered");
    if (const auto* value = std::get_if<Value>(&send.message)) check_value(asked, value->value);
    if (std::holds_alternative<Absent>(send.message))
      must(values_.count(std::get<Look>(asked).key) == 0, "what was set is absent");
  }
  void check(PeerId from, const Message&, bool, const StoreState::Drop& drop) {
    must(drop.peer == from, "somebody else is dropped");
    must(!drop.why.empty(), "somebody is dropped without a reason");
  }

  void check_value(const Message& asked, const std::string& value) const {
    std::string key;
    if (const auto* set = std::get_if<Set>(&asked)) key = set->key;
    if (const auto* get = std::get_if<Get>(&asked)) key = get->key;
    if (const auto* look = std::get_if<Look>(&asked)) key = look->key;
    const auto found = values_.find(key);
    must(found != values_.end() && found->second == value, "a value is not what was set");
  }

  void check_ranks() const {
    std::map<std::uint32_t, int> here;
    for (const auto& [id, peer] : peers_)
      if (state_.proven(id)) must(++here[peer.hello->identity.rank] == 1, "a rank is here twice");
    for (const auto& [rank, count] : here) must(rank < kRanks, "there is a rank too many");
    for (const int rank : state_.missing_ranks())
      must(here.count(static_cast<std::uint32_t>(rank)) == 0, "a rank that is here is missing");
  }

  const RunKey key_{};
  StoreState state_{key_, "run", kAttempt, kRanks};
  std::map<PeerId, Peer> peers_;
  std::map<std::string, std::string> values_;
};

}  // namespace

void try_message(std::string_view bytes) {
  const auto message = decode(bytes);
  if (!message) return;
  must(encode(*message).substr(kLengthBytes) == bytes, "a message is not what its bytes say");
}

void try_conversation(std::string_view bytes) { Conversation().run(Orders(bytes)); }

}  // namespace fleetrun::fuzz

// For libFuzzer: the first byte chooses.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0)
    fleetrun::fuzz::try_message(bytes);
  else
    fleetrun::fuzz::try_conversation(bytes);
  return 0;
}
