// Division by a number that is known when a kernel starts: a multiplication and shifts in place of some twenty instructions
// (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994).
#pragma once
#include <algorithm>
#include <cstdint>

#include "cuda/plugin/grid.cuh"

namespace fleetrun::cuda {

class Divisor {
 public:
  explicit Divisor(int by) : by_(static_cast<std::uint32_t>(by)) {
    int bits = 0;
    while (std::uint64_t{1} << bits < by_) ++bits;
    multiplier_ = static_cast<std::uint32_t>((((std::uint64_t{1} << bits) - by_) << 32U) / by_ + 1);
    first_ = std::min(bits, 1);
    second_ = std::max(bits - 1, 0);
  }

  Divisor() : Divisor(1) {}

  struct Result {
    std::uint32_t quotient, rest;
  };
  __device__ Result divide(std::uint32_t number) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{number} * multiplier_) >> 32U);
    const std::uint32_t quotient = (high + ((number - high) >> first_)) >> second_;
    return {quotient, number - quotient * by_};
  }

 private:
  std::uint32_t by_, multiplier_ = 0;
  int first_ = 0, second_ = 0;  // shifts
};

}  // namespace fleetrun::cuda
