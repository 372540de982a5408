#include "runtime/tensor/philox.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::philox_test {
namespace {

// Known answers of Random123's kat_vectors for philox4x32 with 10 rounds.
TEST_CASE("the numbers are those of the published test vectors") {
  CHECK(philox(0, 0, 0) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~0ULL, ~0ULL, ~0ULL) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("unit floats lie in [0, 1)") {
  CHECK(unit_float(0) == 0.0F);
  CHECK(unit_float(0xffffffff) < 1.0F);
}

}  // namespace
}  // namespace fleetrun::runtime::philox_test
