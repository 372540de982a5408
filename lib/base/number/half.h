// The two 16-bit floating-point formats as bits: f16 (IEEE 754 binary16) and bf16 (the upper half of an f32).
// Narrowing rounds to the nearest, ties to even; NaN stays NaN.
#pragma once
#include <bit>
#include <cstdint>

namespace fleetrun {

inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);  // Inf, NaN
  if (rest >= 0x400) return std::bit_cast<float>(sign | ((rest << 13) + ((127 - 15) << 23)));
  const float tiny = static_cast<float>(rest) * 0x1p-24F;  // zero and subnormal
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
}

inline std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);   // NaN
  if (rest >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to 65536 or more: Inf
  if (rest < 0x38800000) {  // below 2^-14, the smallest normal f16: let the addition of 0.5 round to 2^-24
    const float rounded = std::bit_cast<float>(rest) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000));
  }
  const std::uint32_t rebased = rest - ((127 - 15) << 23);
  return static_cast<std::uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

}  // namespace fleetrun
