#include "base/run/store_protocol.h"

#include <doctest/doctest.h>

#include <random>

#include "base/error/error.h"

namespace fleetrun::store_protocol::store_protocol_test {
namespace {

std::optional<Message> decode_frame(const std::string& frame) {
  REQUIRE(frame.size() > kLengthBytes);
  REQUIRE(decode_length(frame.data()) == frame.size() - kLengthBytes);
  return decode(std::string_view(frame).substr(kLengthBytes));
}

const std::vector<Message>& one_of_each() {
  static const std::vector<Message> messages = {Hello{.identity = {"run-1", 2, 3, 4}, .nonce = make_nonce()},
                                                Challenge{make_nonce(), make_nonce()},
                                                Proof{make_nonce()},
                                                Welcome{},
                                                Refused{"no"},
                                                Set{7, "key", std::string("va\0lue", 6)},
                                                Get{8, "key"},
                                                Look{9, ""},
                                                Done{10},
                                                Value{0xfffffffe, ""},
                                                Absent{11}};
  return messages;
}

TEST_CASE("every message comes back as it was sent") {
  CHECK(one_of_each().size() == std::variant_size_v<Message>);
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    const auto decoded = decode_frame(frame);
    REQUIRE(decoded);
    CHECK(decoded->index() == message.index());
    CHECK(encode(*decoded) == frame);
  }
}

TEST_CASE("the fields of a Hello and a Set arrive") {
  const auto hello = std::get<Hello>(*decode_frame(encode(one_of_each()[0])));
  CHECK(hello.identity == Identity{"run-1", 2, 3, 4});
  CHECK(hello.version == kVersion);
  const auto set = std::get<Set>(*decode_frame(encode(one_of_each()[5])));
  CHECK(set.id == 7);
  CHECK(set.value == std::string("va\0lue", 6));
}

TEST_CASE("a message that is cut short or goes on is none") {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message).substr(kLengthBytes);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      CHECK_FALSE(decode(bytes.substr(0, length)));
    CHECK_FALSE(decode(bytes + "x"));
  }
}

TEST_CASE("a length inside a message that points past its end is none") {
  std::string bytes = encode(Get{1, "key"}).substr(kLengthBytes);
  bytes[5] = bytes[6] = bytes[7] = bytes[8] = '\xff';  // the length of "key"
  CHECK_FALSE(decode(bytes));
}

TEST_CASE("words of other programs are not a message") {
  for (const char* words : {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02", "\0", "\x7f"})
    CHECK_FALSE(decode(words));
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (const auto decoded = decode(bytes)) CHECK(encode(*decoded).substr(kLengthBytes) == bytes);
  }
}

TEST_CASE("a payload of the greatest size fits and a greater one is refused") {
  CHECK(encode(Set{1, "k", std::string(kMaxPayload - 1, 'v')}).size() <= kMaxFrame + kLengthBytes);
  CHECK_THROWS_AS(encode(Set{1, "k", std::string(kMaxFrame, 'v')}), Error);
}

TEST_CASE("a proof depends on the key, on each side, on both nonces and on every field of the identity") {
  const RunKey key = make_run_key();
  const Hello hello{.identity = {"run-1", 2, 3, 4}, .nonce = make_nonce()};
  const Nonce nonce = make_nonce();
  const Mac proof = proof_of_rank(key, hello, nonce);
  CHECK(proof == proof_of_rank(key, hello, nonce));
  CHECK(proof != proof_of_store(key, hello, nonce));
  CHECK(proof != proof_of_rank(make_run_key(), hello, nonce));
  CHECK(proof != proof_of_rank(key, hello, make_nonce()));
  const auto differs_after = [&](auto change) {
    Hello other = hello;
    change(other);
    CHECK(proof != proof_of_rank(key, other, nonce));
  };
  differs_after([](Hello& other) { other.nonce = make_nonce(); });
  differs_after([](Hello& other) { ++other.version; });
  differs_after([](Hello& other) { other.identity.run_id = "run-2"; });
  differs_after([](Hello& other) { ++other.identity.attempt; });
  differs_after([](Hello& other) { ++other.identity.rank; });
  differs_after([](Hello& other) { ++other.identity.world_size; });
}

}  // namespace
}  // namespace fleetrun::store_protocol::store_protocol_test
