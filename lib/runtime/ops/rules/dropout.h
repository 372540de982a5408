// Which elements a dropout keeps: the same forward, backward and on every device.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/tensor/philox.h"

namespace fleetrun::runtime::ops {

struct DropoutDraw {
  std::uint64_t seed = 0;   // of the run
  std::uint64_t step = 0;   // of the run
  std::uint32_t key = 0;    // of the op
  std::uint32_t below = 0;  // a word below this is dropped: p * 2^32

  // One word for each of the elements 4*block .. 4*block+3 (row-major), compared with `below`.
  std::array<std::uint32_t, 4> words(std::uint64_t block) const { return philox(seed, high(), block); }

  std::uint64_t high() const {     // half of the counter
    constexpr int kStepBits = 40;  // a step a millisecond fills them in 30 years
    return (static_cast<std::uint64_t>(key) << kStepBits) ^ step;
  }
};

constexpr std::uint32_t dropped_below(double p) { return static_cast<std::uint32_t>(p * 4294967296.0); }

}  // namespace fleetrun::runtime::ops
