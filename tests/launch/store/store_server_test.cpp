#include "launch/store/store_server.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "base/run/store_protocol.h"
#include "support/store_thread.h"
#include "support/stranger.h"

namespace fleetrun::launch::store_server_test {
namespace {

using namespace std::chrono_literals;
using store_protocol::Challenge;
using store_protocol::decode;
using store_protocol::Done;
using store_protocol::encode;
using store_protocol::Get;
using store_protocol::Hello;
using store_protocol::kLengthBytes;
using store_protocol::kMaxPayload;
using store_protocol::Proof;
using store_protocol::proof_of_rank;
using store_protocol::Refused;
using store_protocol::Set;
using store_protocol::Value;
using store_protocol::Welcome;
using testing::StoreThread;
using testing::Stranger;

StoreServerOptions options_with(const RunKey& key) {
  return {.key = key, .run_id = "run-1", .attempt = 4, .world_size = 3, .handshake_deadline = 10s};
}

Hello hello_of(std::uint32_t rank) { return {.identity = {"run-1", 4, rank, 3}, .nonce = make_nonce()}; }

// One frame, whole: the answers here are short.
template <typename T>
T hear(Stranger& stranger) {
  const std::string frame = stranger.hear();
  REQUIRE(frame.size() > kLengthBytes);
  const auto message = decode(std::string_view(frame).substr(kLengthBytes));
  REQUIRE(message);
  REQUIRE(std::holds_alternative<T>(*message));
  return std::get<T>(*message);
}

// A rank that joins; gives back what it said.
std::string join(Stranger& rank, const RunKey& key, const Hello& hello) {
  rank.say(encode(hello));
  const auto challenge = hear<Challenge>(rank);
  const std::string proof = encode(Proof{proof_of_rank(key, hello, challenge.nonce)});
  rank.say(proof);
  return encode(hello) + proof;
}

// The store still does its work for a rank.
void check_it_serves(const Endpoint& store, const RunKey& key, std::uint32_t rank = 0) {
  Stranger peer(store);
  join(peer, key, hello_of(rank));
  hear<Welcome>(peer);
  peer.say(encode(Set{1, "key", "value"}));
  CHECK(hear<Done>(peer).id == 1);
  peer.say(encode(Get{2, "key"}));
  CHECK(hear<Value>(peer).value == "value");
}

TEST_CASE("it listens where it was told, on a port that the kernel chose") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  CHECK(store.endpoint().host == "127.0.0.1");
  CHECK(store.endpoint().port != 0);
  check_it_serves(store.endpoint(), key);
}

TEST_CASE("hunt 125: it listens at the other addresses of its host, too") {
  const RunKey key = make_run_key();
  StoreServerOptions options = options_with(key);
  options.own_addresses = {"127.0.0.1", "127.0.0.5", "nowhere"};
  StoreThread store(options);
  CHECK(store.also_at() == std::vector<std::string>{"127.0.0.5"});
  check_it_serves(store.endpoint(), key);
  check_it_serves({"127.0.0.5", store.endpoint().port}, key, 1);
}

TEST_CASE("a port that is taken is named") {
  StoreThread store(options_with(make_run_key()));
  EventLoop loop;
  StoreServerOptions options = options_with(make_run_key());
  options.port = store.endpoint().port;
  const std::string wanted =
      "the store cannot listen on " + store.endpoint().describe() + ": Address already in use";
  CHECK_THROWS_WITH_AS(StoreServer(loop, options), wanted.c_str(), Error);
}

TEST_CASE("bytes of strangers are dropped and counted, and ranks do not notice") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  const std::string hello = encode(hello_of(0));
  const std::vector<std::string> words = {
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // a TLS hello
      std::string("\xff\xff\xff\xff", 4),                               // 4 GiB
      std::string("\x00\x00\x00\x00", 4),                               // nothing
      std::string("\x01\x10\x00\x00", 4),                               // one above the limit for strangers
      std::string("\x02\x00\x00\x00zz", 6),                             // a frame of garbage
      encode(Get{1, "key"}),                                            // a request without a handshake
      encode(Proof{}),
  };
  for (const std::string& word : words) {
    Stranger stranger(store.endpoint());
    stranger.say(word);
    CHECK(stranger.thrown_out());
  }
  CHECK(store.dropped() == words.size());
  check_it_serves(store.endpoint(), key);
}

TEST_CASE("a stranger that says one byte, or half a hello, and leaves is dropped") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  { Stranger(store.endpoint()).say("x"); }
  { Stranger(store.endpoint()).say(encode(hello_of(0)).substr(0, 20)); }
  { Stranger silent(store.endpoint()); }
  check_it_serves(store.endpoint(), key);
  CHECK(store.line(0).rfind("dropped 1 connections without a valid handshake (last 127.0.0.1:", 0) == 0);
}

TEST_CASE("a proof with another key is dropped") {
  StoreThread store(options_with(make_run_key()));
  Stranger stranger(store.endpoint());
  join(stranger, make_run_key(), hello_of(0));
  CHECK(stranger.thrown_out());
  CHECK(store.dropped() == 1);
  CHECK(store.missing_ranks() == std::vector{0, 1, 2});
}

TEST_CASE("a recorded handshake is worth nothing the second time") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  std::string recorded;
  {
    Stranger rank(store.endpoint());
    recorded = join(rank, key, hello_of(2));
    hear<Welcome>(rank);
  }
  Stranger replay(store.endpoint());
  replay.say(recorded);
  hear<Challenge>(replay);
  CHECK(replay.thrown_out());
  CHECK(store.dropped() == 1);
}

TEST_CASE("a rank of an earlier attempt is refused in words and logged once") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  for (int i = 0; i < 3; ++i) {
    Stranger stale(store.endpoint());
    Hello hello = hello_of(1);
    hello.identity.attempt = 3;
    join(stale, key, hello);
    CHECK(hear<Refused>(stale).why == "rank 1 belongs to attempt 3, this is attempt 4");
    CHECK(stale.thrown_out());
  }
  CHECK(store.dropped() == 3);
  CHECK(store.line(0).find("rank 1 belongs to attempt 3, this is attempt 4") != std::string::npos);
  CHECK(store.lines_so_far() == 1);
}

TEST_CASE("strangers that follow the first are told of together, when the time has come") {
  StoreServerOptions options = options_with(make_run_key());
  options.report_dropped_every = 50ms;
  StoreThread store(options);
  for (int i = 0; i < 2; ++i) {
    Stranger stranger(store.endpoint());
    stranger.say("GET / HTTP/1.1\r\n\r\n");
    CHECK(stranger.thrown_out());
  }
  CHECK(store.line(0).rfind("dropped 1 connections", 0) == 0);
  CHECK(store.line(1).rfind("dropped 1 connections", 0) == 0);
}

TEST_CASE("a silent peer, and one that drips, is dropped at the deadline of the handshake") {
  StoreServerOptions options = options_with(make_run_key());
  options.handshake_deadline = 100ms;
  StoreThread store(options);
  Stranger silent(store.endpoint());
  Stranger dripping(store.endpoint());
  const std::string hello = encode(hello_of(0));
  std::size_t said = 0;
  while (said < hello.size() && !dripping.hears_within(20)) dripping.say(hello.substr(said++, 1));
  CHECK(said < hello.size());
  CHECK(dripping.thrown_out());
  CHECK(silent.thrown_out());
  CHECK(store.dropped() == 2);
}

TEST_CASE("a hundred silent strangers delay a rank, but do not keep it out") {
  const RunKey key = make_run_key();
  StoreServerOptions options = options_with(key);
  options.handshake_deadline = 100ms;
  StoreThread store(options);
  std::vector<Stranger> strangers;
  strangers.reserve(100);
  for (int i = 0; i < 100; ++i) strangers.emplace_back(store.endpoint());
  check_it_serves(store.endpoint(), key);
  for (Stranger& stranger : strangers) CHECK(stranger.thrown_out());
  CHECK(store.dropped() == 100);
}

TEST_CASE("missing ranks are named again and again until all are there") {
  const RunKey key = make_run_key();
  StoreServerOptions options = options_with(key);
  options.report_missing_every = 50ms;
  StoreThread store(options);
  Stranger rank(store.endpoint());
  join(rank, key, hello_of(1));
  hear<Welcome>(rank);
  const std::size_t said = store.lines_so_far();
  CHECK(store.line(said) == "waiting for ranks 0, 2 (0 s)");
  CHECK(store.line(said + 1) == "waiting for ranks 0, 2 (0 s)");
}

TEST_CASE("the next attempt closes the connections of the one before") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  Stranger rank(store.endpoint());
  join(rank, key, hello_of(1));
  hear<Welcome>(rank);
  store.on_loop([](StoreServer& server) { server.begin_attempt(5, 2); });
  CHECK(rank.thrown_out());
  CHECK(store.missing_ranks() == std::vector{0, 1});
  CHECK(store.dropped() == 0);
}

TEST_CASE("a rank that asks without listening is let go") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  Stranger greedy(store.endpoint());
  join(greedy, key, hello_of(0));
  hear<Welcome>(greedy);
  greedy.say(encode(Set{1, "key", std::string(kMaxPayload - 3, 'v')}));
  hear<Done>(greedy);
  std::string many;
  for (int i = 0; i < 100; ++i) many += encode(Get{2, "key"});
  greedy.say(many);
  check_it_serves(store.endpoint(), key, 1);
}

}  // namespace
}  // namespace fleetrun::launch::store_server_test
