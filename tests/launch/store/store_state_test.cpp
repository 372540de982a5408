#include "launch/store/store_state.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::store_state_test {
namespace {

using namespace store_protocol;

// A store for attempt 4 of run-1 with three ranks, and peers that know how to talk to it.
struct Desk {
  RunKey key = make_run_key();
  StoreState state{key, "run-1", 4, 3};

  Hello hello_of(std::uint32_t rank) { return {.identity = {"run-1", 4, rank, 3}, .nonce = make_nonce()}; }

  StoreState::Actions present(StoreState::PeerId peer, const Hello& hello) {
    state.connected(peer, make_nonce());
    const auto actions = state.on(peer, hello);
    REQUIRE(actions.size() == 1);
    const auto challenge = std::get<Challenge>(std::get<StoreState::Send>(actions[0]).message);
    CHECK(challenge.proof == proof_of_store(key, hello, challenge.nonce));
    return state.on(peer, Proof{proof_of_rank(key, hello, challenge.nonce)});
  }
  void join(StoreState::PeerId peer, std::uint32_t rank) {
    const auto actions = present(peer, hello_of(rank));
    REQUIRE(actions.size() == 1);
    REQUIRE(std::holds_alternative<Welcome>(std::get<StoreState::Send>(actions[0]).message));
  }
};

template <typename T>
T sent(const StoreState::Actions& actions, std::size_t index = 0) {
  REQUIRE(actions.size() > index);
  return std::get<T>(std::get<StoreState::Send>(actions[index]).message);
}
std::string drop_reason(const StoreState::Actions& actions) {
  REQUIRE(!actions.empty());
  return std::get<StoreState::Drop>(actions.back()).why;
}

TEST_CASE("a rank that proves the key is let in and no longer missing") {
  Desk desk;
  CHECK(desk.state.missing_ranks() == std::vector{0, 1, 2});
  desk.join(10, 1);
  CHECK(desk.state.proven(10));
  CHECK(desk.state.missing_ranks() == std::vector{0, 2});
  desk.state.gone(10);
  CHECK(desk.state.missing_ranks() == std::vector{0, 2});  // it came once
}

TEST_CASE("who speaks out of turn, or proves something else, is dropped") {
  Desk desk;
  desk.state.connected(1, make_nonce());
  CHECK(drop_reason(desk.state.on(1, Get{1, "key"})) == "it sent a message out of turn");
  desk.state.connected(2, make_nonce());
  CHECK(drop_reason(desk.state.on(2, Proof{})) == "it sent a message out of turn");
  desk.state.connected(3, make_nonce());
  desk.state.on(3, desk.hello_of(0));
  CHECK(drop_reason(desk.state.on(3, desk.hello_of(0))) == "it sent a message out of turn");
  desk.state.connected(4, make_nonce());
  desk.state.on(4, desk.hello_of(0));
  CHECK(drop_reason(desk.state.on(4, Proof{})) == "wrong proof of the run key");
  CHECK_FALSE(desk.state.proven(4));
  desk.join(5, 0);
  CHECK(drop_reason(desk.state.on(5, Welcome{})) == "it sent a message that no rank may send");
}

TEST_CASE("a proof made for one connection is worth nothing on another") {
  Desk desk;
  const Hello hello = desk.hello_of(0);
  desk.state.connected(1, make_nonce());
  const auto challenge = sent<Challenge>(desk.state.on(1, hello));
  const Proof proof{proof_of_rank(desk.key, hello, challenge.nonce)};
  desk.state.on(1, proof);
  desk.state.gone(1);
  desk.state.connected(2, make_nonce());
  desk.state.on(2, hello);
  CHECK(drop_reason(desk.state.on(2, proof)) == "wrong proof of the run key");
}

TEST_CASE("a rank of another run, attempt or world, or one too many, is told why it is refused") {
  Desk desk;
  const auto refusal = [&](auto change) {
    Hello hello = desk.hello_of(1);
    change(hello.identity);
    const auto actions = desk.present(99, hello);
    CHECK(sent<Refused>(actions).why == drop_reason(actions));
    CHECK_FALSE(desk.state.proven(99));
    desk.state.gone(99);
    return drop_reason(actions);
  };
  CHECK(refusal([](Identity& id) { id.run_id = "run-0"; }) ==
        "rank 1 belongs to run \"run-0\", this is run \"run-1\"");
  CHECK(refusal([](Identity& id) { id.attempt = 3; }) == "rank 1 belongs to attempt 3, this is attempt 4");
  CHECK(refusal([](Identity& id) { id.world_size = 4; }) == "rank 1 counts 4 ranks, this run has 3");
  CHECK(refusal([](Identity& id) { id.rank = 3; }) == "rank 3 does not exist: the run has 3 ranks");
  CHECK(refusal([](Identity& id) { id.rank = 0xffffffff; }) ==
        "rank 4294967295 does not exist: the run has 3 ranks");
  desk.join(1, 1);
  CHECK(refusal([](Identity&) {}) == "rank 1 has already joined");
  desk.state.gone(1);
  desk.join(2, 1);
}

TEST_CASE("another version of the protocol is refused before anything else") {
  Desk desk;
  desk.state.connected(1, make_nonce());
  Hello hello = desk.hello_of(0);
  hello.version = kVersion + 1;
  const auto actions = desk.state.on(1, hello);
  CHECK(sent<Refused>(actions).why == "it speaks version 2 of the store protocol, wanted 1");
}

TEST_CASE("a get waits until the key is set, by anybody, and a look does not wait") {
  Desk desk;
  desk.join(1, 0);
  desk.join(2, 1);
  CHECK(desk.state.on(1, Get{7, "key"}).empty());
  CHECK(sent<Absent>(desk.state.on(2, Look{1, "key"})).id == 1);
  const auto actions = desk.state.on(2, Set{2, "key", "value"});
  CHECK(sent<Done>(actions).id == 2);
  CHECK(std::get<StoreState::Send>(actions[1]).to == 1);
  CHECK(sent<Value>(actions, 1).id == 7);
  CHECK(sent<Value>(actions, 1).value == "value");
  CHECK(sent<Value>(desk.state.on(1, Get{8, "key"})).value == "value");
  CHECK(sent<Value>(desk.state.on(1, Look{9, "key"})).value == "value");
  CHECK(desk.state.on(2, Set{3, "key", "other"}).size() == 1);  // nobody waits any more
}

TEST_CASE("a rank's next request takes the place of the one that it gave up") {
  Desk desk;
  desk.join(1, 0);
  desk.state.on(1, Get{1, "key"});
  desk.state.on(1, Get{2, "other"});
  CHECK(desk.state.on(1, Set{3, "key", "value"}).size() == 1);
  CHECK(desk.state.on(1, Set{4, "other", "value"}).size() == 1);
}

TEST_CASE("the next attempt knows nothing of the one before") {
  Desk desk;
  desk.join(1, 0);
  desk.state.on(1, Set{1, "key", "value"});
  desk.state.gone(1);
  desk.state.begin_attempt(5, 2);
  CHECK(desk.state.missing_ranks() == std::vector{0, 1});
  CHECK(drop_reason(desk.present(2, desk.hello_of(0))) == "rank 0 belongs to attempt 4, this is attempt 5");
  Hello hello = desk.hello_of(0);
  hello.identity.attempt = 5;
  hello.identity.world_size = 2;
  sent<Welcome>(desk.present(3, hello));
  sent<Absent>(desk.state.on(3, Look{1, "key"}));
}

TEST_CASE("the store takes no more than it can hold, and a key set again counts once") {
  Desk desk;
  desk.join(1, 0);
  const std::string megabyte(1000 << 10, 'v');
  for (int i = 0; i < 100; ++i) sent<Done>(desk.state.on(1, Set{1, "same", megabyte}));
  StoreState::Actions actions;
  for (int i = 0; i < 80 && actions.size() != 2; ++i)
    actions = desk.state.on(1, Set{1, std::to_string(i), megabyte});
  CHECK(drop_reason(actions).rfind("the store is full with ", 0) == 0);
}

TEST_CASE("a peer that is not known gets nothing") {
  Desk desk;
  CHECK(desk.state.on(5, desk.hello_of(0)).empty());
}

}  // namespace
}  // namespace fleetrun::launch::store_state_test
