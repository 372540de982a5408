#include "launch/store/store_state.h"

#include <utility>

#include <fmt/format.h>

namespace fleetrun::launch {

using namespace store_protocol;

StoreState::StoreState(RunKey key, std::string run_id, int attempt, int world_size)
    : key_(key), run_id_(std::move(run_id)), attempt_(attempt), world_size_(world_size) {}

void StoreState::begin_attempt(int attempt, int world_size) {
  attempt_ = attempt;
  world_size_ = world_size;
  joined_.clear();
  values_.clear();
  stored_bytes_ = 0;
}

void StoreState::connected(PeerId peer, const Nonce& our_nonce) { peers_[peer].nonce = our_nonce; }

void StoreState::gone(PeerId peer) { peers_.erase(peer); }

bool StoreState::proven(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.proven;
}

std::vector<int> StoreState::missing_ranks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < world_size_; ++rank)
    if (joined_.count(rank) == 0) missing.push_back(rank);
  return missing;
}

StoreState::Actions StoreState::on(PeerId id, const Message& message) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return {};
  Peer& peer = found->second;
  if (peer.proven) return on_request(id, peer, message);
  const auto* hello = std::get_if<Hello>(&message);
  if (hello != nullptr && !peer.hello) return on_hello(id, peer, *hello);
  const auto* proof = std::get_if<Proof>(&message);
  if (proof != nullptr && peer.hello) return on_proof(id, peer, *proof);
  return {Drop{id, "it sent a message out of turn"}};
}

StoreState::Actions StoreState::on_hello(PeerId id, Peer& peer, const Hello& hello) {
  if (hello.version != kVersion) {
    const std::string why =
        fmt::format("it speaks version {} of the store protocol, wanted {}", hello.version, kVersion);
    return {Send{id, Refused{why}}, Drop{id, why}};
  }
  peer.hello = hello;
  return {Send{id, Challenge{peer.nonce, proof_of_store(key_, hello, peer.nonce)}}};
}

StoreState::Actions StoreState::on_proof(PeerId id, Peer& peer, const Proof& proof) {
  if (!equal_in_constant_time(proof.proof, proof_of_rank(key_, *peer.hello, peer.nonce)))
    return {Drop{id, "wrong proof of the run key"}};
  if (const auto why = objection_to(id, peer.hello->identity))
    return {Send{id, Refused{*why}}, Drop{id, *why}};
  peer.proven = true;
  joined_.insert(static_cast<int>(peer.hello->identity.rank));
  return {Send{id, Welcome{}}};
}

std::optional<std::string> StoreState::objection_to(PeerId id, const Identity& identity) const {
  if (identity.run_id != run_id_)
    return fmt::format("rank {} belongs to run \"{}\", this is run \"{}\"", identity.rank, identity.run_id,
                       run_id_);
  if (std::cmp_not_equal(identity.attempt, attempt_))
    return fmt::format("rank {} belongs to attempt {}, this is attempt {}", identity.rank, identity.attempt,
                       attempt_);
  if (std::cmp_not_equal(identity.world_size, world_size_))
    return fmt::format("rank {} counts {} ranks, this run has {}", identity.rank, identity.world_size,
                       world_size_);
  if (std::cmp_greater_equal(identity.rank, world_size_))
    return fmt::format("rank {} does not exist: the run has {} ranks", identity.rank, world_size_);
  for (const auto& [other, peer] : peers_)
    if (other != id && peer.proven && peer.hello->identity.rank == identity.rank)
      return fmt::format("rank {} has already joined", identity.rank);
  return std::nullopt;
}

StoreState::Actions StoreState::on_request(PeerId id, Peer& peer, const Message& message) {
  peer.waiting.reset();
  if (const auto* set = std::get_if<Set>(&message)) return on_set(id, *set);
  if (const auto* look = std::get_if<Look>(&message)) {
    const auto found = values_.find(look->key);
    if (found == values_.end()) return {Send{id, Absent{look->id}}};
    return {Send{id, Value{look->id, found->second}}};
  }
  if (const auto* get = std::get_if<Get>(&message)) {
    const auto found = values_.find(get->key);
    if (found != values_.end()) return {Send{id, Value{get->id, found->second}}};
    peer.waiting = *get;
    return {};
  }
  return {Drop{id, "it sent a message that no rank may send"}};
}

StoreState::Actions StoreState::on_set(PeerId id, const Set& set) {
  const auto old = values_.find(set.key);
  if (old != values_.end()) stored_bytes_ -= old->first.size() + old->second.size();
  const std::size_t added = set.key.size() + set.value.size();
  if (stored_bytes_ + added > kMaxStoredBytes) {
    const std::string why = fmt::format("the store is full with {} bytes", stored_bytes_);
    return {Send{id, Refused{why}}, Drop{id, why}};
  }
  stored_bytes_ += added;
  values_[set.key] = set.value;
  Actions actions = {Send{id, Done{set.id}}};
  for (auto& [other, peer] : peers_) {
    if (!peer.waiting || peer.waiting->key != set.key) continue;
    actions.push_back(Send{other, Value{peer.waiting->id, set.value}});
    peer.waiting.reset();
  }
  return actions;
}

}  // namespace fleetrun::launch
