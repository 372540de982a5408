// How elements are stored and combined, and the loop over them, inlined into one function per instruction set. Private
// to reduce.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/number/half.h"

namespace fleetrun::comm {

// How elements are stored in memory, and the type used to compute with them.
template <typename T>
struct Plain {
  using Stored = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
struct F16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return f16_to_f32(bits); }
  static Stored store(float value) { return f32_to_f16(value); }
};
struct Bf16 {
  using Stored = std::uint16_t;
  static float load(Stored bits) { return bf16_to_f32(bits); }
  static Stored store(float value) { return f32_to_bf16(value); }
};

// Integers wrap around instead of overflowing.
struct Sum {
  static float of(float a, float b) { return a + b; }
  static std::int32_t of(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  static std::int64_t of(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
// A NaN on either side wins, so that no rank's NaN gets lost. (`|` and not `||`: no branch.)
struct Max {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<bool>((a != a) | (a > b)) ? a : b;
  }
};
struct Min {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<bool>((a != a) | (a < b)) ? a : b;
  }
};

// `out` may be `a` or `b`: no element depends on another one, as the pragma says.
template <typename Format, typename Op>
[[gnu::always_inline]] inline void reduce_loop(typename Format::Stored* out, const typename Format::Stored* a,
                                               const typename Format::Stored* b, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    out[i] = Format::store(Op::of(Format::load(a[i]), Format::load(b[i])));
}

template <typename Format, typename Op>
[[gnu::always_inline]] inline void reduce_both_loop(typename Format::Stored* a, typename Format::Stored* b,
                                                    std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    a[i] = b[i] = Format::store(Op::of(Format::load(a[i]), Format::load(b[i])));
}

}  // namespace fleetrun::comm
