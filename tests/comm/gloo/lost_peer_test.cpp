#include "comm/gloo/lost_peer.h"

#include <doctest/doctest.h>

#include "comm/rendezvous/memory_store.h"

namespace fleetrun::comm::lost_peer_test {
namespace {

constexpr const char* kWhere = "collective 5, barrier";

Failing who_lost(int rank, PeerState state) {
  return {.where = kWhere, .lost = LostPeer{rank, "10.0.0." + std::to_string(rank + 1), state}};
}

// What `self` says when these are the answers; by names that are 10 more than the rank.
std::string cause(int self, const std::vector<std::optional<Failing>>& failings, bool store_answers = true) {
  MemoryStore store;
  std::vector<std::optional<std::string>> answers;
  Party party = {store, self, static_cast<int>(failings.size()), {}};
  for (const auto& failing : failings) {
    answers.push_back(failing && store_answers ? std::optional(pack(*failing)) : std::nullopt);
    party.names.push_back(static_cast<int>(party.names.size()) + 10);
  }
  return find_cause(answers, *failings[static_cast<std::size_t>(self)], party);
}

TEST_CASE("what a failing rank says can be packed and unpacked") {
  const Failing plain = {.where = "collective 5, all_reduce of 1000 f32 (sum)", .lost = std::nullopt};
  CHECK(unpack_failing(pack(plain)).where == plain.where);
  CHECK_FALSE(unpack_failing(pack(plain)).lost);
  const Failing lost = who_lost(12, PeerState::silent);
  CHECK(unpack_failing(pack(lost)).where == kWhere);
  CHECK(unpack_failing(pack(lost)).lost == lost.lost);
}

TEST_CASE("two ranks that lost each other both say so") {
  const std::vector<std::optional<Failing>> answers = {who_lost(1, PeerState::reset),
                                                       who_lost(0, PeerState::reset)};
  CHECK(cause(0, answers) == "lost the connection to rank 11 on 10.0.0.2: the connection was reset");
  CHECK(cause(1, answers) == "lost the connection to rank 10 on 10.0.0.1: the connection was reset");
}

TEST_CASE("a rank that does not answer is the one that was lost, also for who lost somebody else by it") {
  const std::vector<std::optional<Failing>> answers = {who_lost(1, PeerState::closed),
                                                       who_lost(2, PeerState::closed),
                                                       who_lost(3, PeerState::silent), std::nullopt};
  CHECK(cause(2, answers) == "lost the connection to rank 13 on 10.0.0.4: no answer for 5 s");
  CHECK(cause(1, answers) == "rank 12 lost the connection to rank 13 on 10.0.0.4: no answer for 5 s");
  CHECK(cause(0, answers) == "rank 12 lost the connection to rank 13 on 10.0.0.4: no answer for 5 s");
}

TEST_CASE("without the store a rank only knows what it saw") {
  CHECK(cause(1, {who_lost(1, PeerState::silent), who_lost(0, PeerState::silent)}, false) ==
        "lost the connection to rank 10 on 10.0.0.1: no answer for 5 s; the store does not answer either");
}

TEST_CASE("who failed by itself did not lose a connection, and is not said to be lost") {
  const Failing waited = {.where = kWhere, .lost = std::nullopt};
  CHECK(cause(0, {who_lost(1, PeerState::closed), waited, std::nullopt}) == "waited for rank 12");
  CHECK(cause(1, {who_lost(1, PeerState::closed), waited, std::nullopt}) == "waited for rank 12");
  const Failing elsewhere = {.where = "collective 4, barrier", .lost = std::nullopt};
  CHECK(cause(0, {who_lost(1, PeerState::closed), elsewhere}) == "rank 11 failed in collective 4, barrier");
}

TEST_CASE(
    "hunt 38: of two ranks that name each other, the one that heard nothing any more lost the other first") {
  const std::vector<std::optional<Failing>> answers = {who_lost(1, PeerState::silent),
                                                       who_lost(0, PeerState::closed)};
  CHECK(cause(1, answers) == "rank 10 lost the connection to rank 11 on 10.0.0.2: no answer for 5 s");
  CHECK(cause(0, answers) == "lost the connection to rank 11 on 10.0.0.2: no answer for 5 s");
}

TEST_CASE("answers that go round in a circle end with what the rank itself saw") {
  CHECK(cause(0, {who_lost(1, PeerState::reset), who_lost(2, PeerState::reset),
                  who_lost(0, PeerState::reset)}) ==
        "lost the connection to rank 11 on 10.0.0.2: the connection was reset");
}

}  // namespace
}  // namespace fleetrun::comm::lost_peer_test
