// The language between a rank and the store in the launcher: frames, the handshake, the requests. Only bytes
// and values here, no sockets.
//
//   rank                                            store
//   Hello{version, run, attempt, rank, nonce}  -->
//                     <--  Challenge{nonce, HMAC("store" + everything said so far)}
//   Proof{HMAC("rank" + everything said so far)} -->
//                     <--  Welcome, or Refused{why}
//   Set{id, key, value}  -->        <--  Done{id}
//   Get{id, key}         -->        <--  Value{id, value}, as soon as somebody has set the key
//   Look{id, key}        -->        <--  Value{id, value} or Absent{id}, at once
//
// Both sides prove that they hold the run key, over nonces of both, so that nothing recorded can be used
// again. A frame is its length (4 bytes, little endian, without these 4) and the message: its type (1 byte),
// its fields.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/run/run_key.h"

namespace fleetrun::store_protocol {

constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMaxFrame = 1 << 20;           // bytes of a message once both sides are proven
constexpr std::size_t kMaxUnprovenFrame = 4 << 10;   // and before: a Hello is far below
constexpr std::size_t kMaxPayload = kMaxFrame - 64;  // bytes of key and value together in a Set

// Who a rank says it is; all of it goes into both HMACs.
struct Identity {
  std::string run_id;
  std::uint32_t attempt = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  bool operator==(const Identity&) const = default;
};

struct Hello {
  std::uint32_t version = kVersion;
  Identity identity;
  Nonce nonce{};
};
struct Challenge {
  Nonce nonce{};
  Mac proof{};
};
struct Proof {
  Mac proof{};
};
struct Welcome {};
struct Refused {
  std::string why;
};
struct Set {
  std::uint32_t id = 0;  // the reply carries it, so that a late reply is not taken for the next one
  std::string key;
  std::string value;
};
struct Get {
  std::uint32_t id = 0;
  std::string key;
};
struct Look {
  std::uint32_t id = 0;
  std::string key;
};
struct Done {
  std::uint32_t id = 0;
};
struct Value {
  std::uint32_t id = 0;
  std::string value;
};
struct Absent {
  std::uint32_t id = 0;
};

using Message = std::variant<Hello, Challenge, Proof, Welcome, Refused, Set, Get, Look, Done, Value, Absent>;

// A whole frame. Throws Error(protocol) when the message is above kMaxFrame.
std::string encode(const Message& message);

// The message in a frame without its length; nothing when the bytes are not a message of this protocol.
std::optional<Message> decode(std::string_view bytes);

constexpr std::size_t kLengthBytes = 4;
std::uint32_t decode_length(const char* bytes);  // from kLengthBytes bytes

// What the two sides prove: that they hold `key` and mean this very conversation.
Mac proof_of_store(const RunKey& key, const Hello& hello, const Nonce& store_nonce);
Mac proof_of_rank(const RunKey& key, const Hello& hello, const Nonce& store_nonce);

}  // namespace fleetrun::store_protocol
