#include "base/run/run_key.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::array<std::uint8_t, 32> random_bytes() {
  std::array<std::uint8_t, 32> bytes{};
  // Up to 256 bytes come whole; only the wait for the kernel's first entropy can be interrupted.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    if (errno != EINTR)
      throw Error(ErrorKind::os, fmt::format("getting random bytes: {}", describe_errno(errno)));
  return bytes;
}

}  // namespace

RunKey make_run_key() { return {random_bytes()}; }

Nonce make_nonce() { return random_bytes(); }

UniqueFd put_run_key(const RunKey& key) {
  UniqueFd fd(::memfd_create("fleetrun-run-key", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool written = fd && ::pwrite(fd.get(), key.bytes.data(), RunKey::kBytes, 0) == RunKey::kBytes;
  if (!written || ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    throw Error(ErrorKind::os, fmt::format("putting the run key into memory: {}", describe_errno(errno)));
  return fd;
}

RunKey read_run_key(int fd) {
  std::array<std::uint8_t, RunKey::kBytes + 1> bytes{};  // one more, to see a file that is too long
  const ssize_t count = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (count < 0)
    throw Error(ErrorKind::protocol,
                fmt::format("reading the run key from descriptor {}: {}", fd, describe_errno(errno)));
  if (count != RunKey::kBytes)
    throw Error(ErrorKind::protocol,
                fmt::format("descriptor {} holds {}{} bytes, wanted the {} of a run key", fd,
                            count > 32 ? "over " : "", count > 32 ? 32 : count, RunKey::kBytes));
  RunKey key;
  std::copy_n(bytes.begin(), RunKey::kBytes, key.bytes.begin());
  return key;
}

Mac hmac_sha256(const RunKey& key, std::string_view message) {
  static_assert(RunKey::kBytes == crypto_auth_hmacsha256_KEYBYTES &&
                sizeof(Mac) == crypto_auth_hmacsha256_BYTES);
  Mac mac{};
  const auto* text = reinterpret_cast<const unsigned char*>(message.data());
  ::crypto_auth_hmacsha256(mac.data(), text, message.size(), key.bytes.data());  // cannot fail
  return mac;
}

bool equal_in_constant_time(const Mac& a, const Mac& b) {
  return ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fleetrun
