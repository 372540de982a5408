#include "base/run/run_key.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/error/error.h"

namespace fleetrun::run_key_test {
namespace {

std::string hex(const Mac& mac) {
  std::string text;
  for (const std::uint8_t byte : mac) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST_CASE("two keys and two nonces are never the same") {
  CHECK(make_run_key() != make_run_key());
  CHECK(make_nonce() != make_nonce());
}

TEST_CASE("a key put into memory is read back, as often as there are workers") {
  const RunKey key = make_run_key();
  const UniqueFd fd = put_run_key(key);
  CHECK(read_run_key(fd.get()) == key);
  CHECK(read_run_key(fd.get()) == key);
}

TEST_CASE("the key's memory can be neither written nor resized, and is not inherited by accident") {
  const UniqueFd fd = put_run_key(make_run_key());
  CHECK(::pwrite(fd.get(), "x", 1, 0) == -1);
  CHECK(::ftruncate(fd.get(), 0) == -1);
  CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a descriptor that holds no key is named") {
  CHECK_THROWS_WITH_AS(read_run_key(-1),
                       "reading the run key from descriptor -1: Bad file descriptor (errno 9)", Error);
  const UniqueFd fd(::memfd_create("test", 0));
  const std::string start = "descriptor " + std::to_string(fd.get()) + " holds ";
  REQUIRE(::write(fd.get(), "short", 5) == 5);
  CHECK_THROWS_WITH_AS(read_run_key(fd.get()), (start + "5 bytes, wanted the 32 of a run key").c_str(),
                       Error);
  REQUIRE(::ftruncate(fd.get(), 100) == 0);
  CHECK_THROWS_WITH_AS(read_run_key(fd.get()), (start + "over 32 bytes, wanted the 32 of a run key").c_str(),
                       Error);
}

// The key of RFC 4231 test case 1 is shorter than ours; zero padding does not change an HMAC.
// HMAC.
TEST_CASE("the HMAC is that of RFC 4231") {
  RunKey key;
  for (int i = 0; i < 20; ++i) key.bytes[static_cast<std::size_t>(i)] = 0x0b;
  CHECK(hex(hmac_sha256(key, "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST_CASE("digests that differ in one bit differ") {
  const Mac mac = hmac_sha256(RunKey(), "text");
  Mac other = mac;
  CHECK(equal_in_constant_time(mac, other));
  other.back() ^= 1;
  CHECK_FALSE(equal_in_constant_time(mac, other));
}

}  // namespace
}  // namespace fleetrun::run_key_test
