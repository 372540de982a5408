#include "comm/gloo/mesh_state.h"

#include <doctest/doctest.h>

#include "comm/rendezvous/memory_store.h"

namespace fleetrun::comm::mesh_state_test {
namespace {

MeshState proven() { return {.proven = true, .missing = std::nullopt, .why = {}}; }
MeshState failed(const std::string& why) { return {.proven = false, .missing = std::nullopt, .why = why}; }
MeshState misses(int peer, const std::string& own_end, const std::string& end_of_peer) {
  return {.proven = false, .missing = MissingLink{peer, own_end, end_of_peer}, .why = "no answer in 10 s"};
}

MeshState left_by(int peer, const std::string& own_end, const std::string& end_of_peer) {
  MeshState state = misses(peer, own_end, end_of_peer);
  state.why = "the other end closed it";
  state.peer_left = true;
  return state;
}

std::string problem(const std::vector<MeshState>& states, std::vector<int> names = {}) {
  MemoryStore store;
  const Party party = {.store = store, .rank = 0, .size = static_cast<int>(states.size()), .names = names};
  return describe_problem(states, party).value_or("");
}

TEST_CASE("a state of a mesh comes back as it was packed") {
  for (const MeshState& state :
       {proven(), failed(""), failed("first line\nsecond line"), misses(7, "10.0.0.1:1", "[fd00::1]:2"),
        left_by(7, "10.0.0.1:1", "[fd00::1]:2")})
    CHECK(unpack_mesh_state(pack(state)) == state);
}

TEST_CASE("a mesh whose ranks are all proven has no problem") { CHECK(problem({proven(), proven()}) == ""); }

TEST_CASE("the ranks that cannot connect are named with their addresses, not those that wait for them") {
  CHECK(problem({failed("timed out"), misses(2, "10.0.0.2:41", "10.0.0.3:51"),
                 misses(1, "10.0.0.3:51", "10.0.0.2:41")}) ==
        "no connection between rank 1 at 10.0.0.2:41 and rank 2 at 10.0.0.3:51: no answer in 10 s");
}

TEST_CASE(
    "a rank that waits for one that misses another is not named, unless nobody is missed by both ends") {
  const MeshState one = misses(2, "b", "c"), two = misses(1, "c", "b"), three = misses(2, "d", "c");
  CHECK(problem({proven(), one, two, three}) ==
        "no connection between rank 1 at b and rank 2 at c: no answer in 10 s");
  CHECK(problem({proven(), proven(), failed("it stopped"), three}) ==
        "no connection between rank 3 at d and rank 2 at c: no answer in 10 s");
}

TEST_CASE("a link that the peer closed is not named beside one that could not be made") {
  CHECK(problem({left_by(2, "a", "c"), left_by(0, "b", "a"), misses(1, "c", "b")}) ==
        "no connection between rank 2 at c and rank 1 at b: no answer in 10 s");
  CHECK(problem({proven(), left_by(2, "b", "c"), misses(1, "c", "b")}) ==
        "no connection between rank 2 at c and rank 1 at b: no answer in 10 s");
  CHECK(problem({proven(), left_by(2, "b", "c"), proven()}) ==
        "no connection between rank 1 at b and rank 2 at c: the other end closed it");
}

TEST_CASE("without a missing link the first rank that is not proven says why") {
  CHECK(problem({proven(), failed("no key"), failed("no key, either")}) == "rank 1 says: no key");
}

TEST_CASE("ranks of a part of the world have their names in the world") {
  CHECK(problem({misses(1, "a", "b"), misses(0, "b", "a")}, {4, 9}) ==
        "no connection between rank 4 at a and rank 9 at b: no answer in 10 s");
}

TEST_CASE("of many missing links some are named and the others counted") {
  std::vector<MeshState> states;
  for (int rank = 0; rank < 12; ++rank) states.push_back(misses(rank ^ 1, "a", "b"));
  const std::string words = problem(states);
  CHECK(words.starts_with("no connection between rank 0 at a and rank 1 at b: no answer in 10 s; "));
  CHECK(words.ends_with("; and 2 more"));
}

}  // namespace
}  // namespace fleetrun::comm::mesh_state_test
