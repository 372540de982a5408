#include "runtime/tensor/philox.h"

namespace fleetrun::runtime {
namespace {

// Multipliers and key increments of the paper, table 2 and section 4.3.
constexpr std::uint32_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t high, std::uint64_t low) {
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> x = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                                    static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiply0} * x[0];
    const std::uint64_t product1 = std::uint64_t{kMultiply1} * x[2];
    x = {static_cast<std::uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

}  // namespace fleetrun::runtime
