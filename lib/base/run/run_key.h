// The secret that all parts of one run share, and the proofs (HMAC-SHA256) that are made with it.
// The launcher makes it; local workers inherit it through a descriptor, never through a variable.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/system/unique_fd.h"

namespace fleetrun {

struct RunKey {
  static constexpr std::size_t kBytes = 32;  // as long as the digest of the HMAC
  std::array<std::uint8_t, kBytes> bytes{};
  bool operator==(const RunKey&) const = default;
};

using Mac = std::array<std::uint8_t, 32>;    // a digest of HMAC-SHA256
using Nonce = std::array<std::uint8_t, 32>;  // a random value, used once

// Fresh from getrandom(2). Throws Error(os).
RunKey make_run_key();
Nonce make_nonce();

// A sealed, read-only memfd with the key; any number of workers may inherit the same one (reading moves no
// position). It is close-on-exec: whoever starts a worker passes it on on purpose. Throws Error(os).
UniqueFd put_run_key(const RunKey& key);
// Throws Error(protocol) when `fd` holds no key.
RunKey read_run_key(int fd);

Mac hmac_sha256(const RunKey& key, std::string_view message);
// Takes the same time wherever the two differ.
bool equal_in_constant_time(const Mac& a, const Mac& b);

}  // namespace fleetrun
