#include "base/number/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace fleetrun::half_test {
namespace {

// Every f16 as a float, from the definition: sign, exponent, fraction.
float f16_by_definition(std::uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 0x3ff);
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST_CASE("every f16 is read as its definition says and written back with the same bits") {
  int wrong = 0;
  for (unsigned i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float wanted = f16_by_definition(bits);
    const float found = f16_to_f32(bits);
    if (std::isnan(wanted)) {
      wrong += !std::isnan(found) || !std::isnan(f16_to_f32(f32_to_f16(found)));
    } else {
      wrong += found != wanted || std::signbit(found) != std::signbit(wanted) || f32_to_f16(found) != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("between two f16 the nearer is taken, and the even one in the middle") {
  int wrong = 0;
  for (unsigned i = 0; i < 0x7bff; ++i) {  // all pairs of positive neighbours
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const float middle = (f16_by_definition(low) + f16_by_definition(high)) / 2;
    wrong += f32_to_f16(middle) != (i % 2 == 0 ? low : high);
    wrong += f32_to_f16(std::nextafter(middle, 0.0F)) != low;
    wrong += f32_to_f16(-std::nextafter(middle, INFINITY)) != (high | 0x8000);
  }
  CHECK(wrong == 0);
}

TEST_CASE("what is too large for f16 is infinite, what is too small is zero") {
  CHECK(f32_to_f16(65519.9F) == 0x7bff);
  CHECK(f32_to_f16(65520) == 0x7c00);
  CHECK(f32_to_f16(-1e30F) == 0xfc00);
  CHECK(f32_to_f16(1e-10F) == 0);
  CHECK(f32_to_f16(-std::numeric_limits<float>::denorm_min()) == 0x8000);
}

TEST_CASE("bf16 rounds to the nearest, ties to even, and keeps NaN and infinity") {
  CHECK(f32_to_bf16(1) == 0x3f80);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3f808000U)) == 0x3f80);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3f818000U)) == 0x3f82);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3f808001U)) == 0x3f81);
  CHECK(f32_to_bf16(-INFINITY) == 0xff80);
  CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001U)))));
  int wrong = 0;
  for (unsigned i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = bf16_to_f32(bits);
    if (!std::isnan(value)) wrong += f32_to_bf16(value) != bits;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace fleetrun::half_test
