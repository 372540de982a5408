// Counter-based random numbers (Salmon et al. 2011, Philox4x32-10): a pure function of key and counter, so
// that a number depends on what it is for and not on who draws first.
#pragma once
#include <array>
#include <cstdint>

namespace fleetrun::runtime {

// Four independent 32-bit numbers for each (key, high, low).
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t high, std::uint64_t low);

// In [0, 1), with 24 random bits: exact in f32.
inline float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

}  // namespace fleetrun::runtime
