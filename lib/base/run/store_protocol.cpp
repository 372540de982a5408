#include "base/run/store_protocol.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::store_protocol {
namespace {

constexpr std::uint32_t kMagic = 0x54534c46;  // "FLST", first in a Hello: other programs say something else

// Every message names its fields once, here; reading and writing both follow this list.
void visit(auto& self, auto&& field) {
  using M = std::remove_cvref_t<decltype(self)>;
  if constexpr (std::is_same_v<M, Hello>) {
    field(self.version);
    field(self.identity.run_id);
    field(self.identity.attempt);
    field(self.identity.rank);
    field(self.identity.world_size);
    field(self.nonce);
  } else if constexpr (std::is_same_v<M, Challenge>) {
    field(self.nonce);
    field(self.proof);
  } else if constexpr (std::is_same_v<M, Proof>) {
    field(self.proof);
  } else if constexpr (std::is_same_v<M, Refused>) {
    field(self.why);
  } else if constexpr (std::is_same_v<M, Set>) {
    field(self.id);
    field(self.key);
    field(self.value);
  } else if constexpr (std::is_same_v<M, Get> || std::is_same_v<M, Look>) {
    field(self.id);
    field(self.key);
  } else if constexpr (std::is_same_v<M, Value>) {
    field(self.id);
    field(self.value);
  } else if constexpr (std::is_same_v<M, Done> || std::is_same_v<M, Absent>) {
    field(self.id);
  }
}

struct Writer {
  std::string bytes;

  void operator()(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(number >> shift & 0xff));
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint32_t>(text.size()));
    bytes += text;
  }
  void operator()(const std::array<std::uint8_t, 32>& digest) { bytes.append(digest.begin(), digest.end()); }
};

// Never reads past the end: what is missing makes `whole` false.
struct Reader {
  std::string_view rest;
  bool whole = true;

  std::string_view take(std::size_t count) {
    if (count > rest.size()) whole = false;
    const std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(taken.size());
    return taken;
  }
  void operator()(std::uint32_t& number) {
    const std::string_view four = take(4);
    if (whole) number = decode_length(four.data());
  }
  void operator()(std::string& text) {
    std::uint32_t length = 0;
    (*this)(length);
    text = take(length);
  }
  void operator()(std::array<std::uint8_t, 32>& digest) {
    const std::string_view bytes = take(digest.size());
    if (whole) std::copy(bytes.begin(), bytes.end(), digest.begin());
  }
};

template <std::size_t index = 0>
std::optional<Message> decode_as(std::size_t type, Reader reader) {
  if constexpr (index == std::variant_size_v<Message>) {
    return std::nullopt;
  } else {
    if (type != index) return decode_as<index + 1>(type, reader);
    std::variant_alternative_t<index, Message> message;
    std::uint32_t magic = kMagic;
    if constexpr (std::is_same_v<decltype(message), Hello>) reader(magic);
    visit(message, reader);
    if (!reader.whole || !reader.rest.empty() || magic != kMagic) return std::nullopt;
    return message;
  }
}

Mac proof(const RunKey& key, std::string_view side, const Hello& hello, const Nonce& store_nonce) {
  Writer writer;
  writer(std::string(side));
  visit(hello, writer);
  writer(store_nonce);
  return hmac_sha256(key, writer.bytes);
}

}  // namespace

std::string encode(const Message& message) {
  Writer writer;
  writer.bytes.push_back(static_cast<char>(message.index()));
  if (std::holds_alternative<Hello>(message)) writer(kMagic);
  std::visit([&writer](const auto& fields) { visit(fields, writer); }, message);
  if (writer.bytes.size() > kMaxFrame)
    throw Error(ErrorKind::protocol,
                fmt::format("a message to or from the store has {} bytes, the most is {}",
                            writer.bytes.size(), kMaxFrame));
  Writer frame;
  frame(static_cast<std::uint32_t>(writer.bytes.size()));
  return std::move(frame.bytes) + writer.bytes;
}

std::optional<Message> decode(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  return decode_as(static_cast<unsigned char>(bytes.front()), {.rest = bytes.substr(1)});
}

std::uint32_t decode_length(const char* bytes) {
  std::uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

Mac proof_of_store(const RunKey& key, const Hello& hello, const Nonce& store_nonce) {
  return proof(key, "store", hello, store_nonce);
}

Mac proof_of_rank(const RunKey& key, const Hello& hello, const Nonce& store_nonce) {
  return proof(key, "rank", hello, store_nonce);
}

}  // namespace fleetrun::store_protocol
