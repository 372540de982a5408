// Elements of f32 or bf16 in vector registers, computed with as f32: for loops that are compiled for several instruction sets
// (FLEETRUN_VECTOR_CLONES), in whose bodies all of this is inlined.
//
// Masks are made by arithmetic on the bits of elements, since gcc makes comparisons of rows that are wider than a register of
// the oldest instruction set lane by lane.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/kernels/cpu/narrow.h"

#define FLEETRUN_INLINE __attribute__((always_inline)) inline

namespace fleetrun::runtime::cpu {

constexpr int kLanes = 16;  // floats of the widest vector register, and of oneDNN's blocks

// kLanes elements in a register, or in as many as the processor needs. Never passed to a function that is not inlined.
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using Bits = std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Unsigned = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));

// A load of bf16 fills two registers, one with the elements at even places and one with those at odd places: a word of memory
// holds one of each, which a shift and a mask part. So factors and sums of bf16 are in that order, too, inside these loops.
template <typename T>
constexpr int kRegisters = std::is_same_v<T, Bf16> ? 2 : 1;
template <typename T>
constexpr std::int64_t kWidth = kRegisters<T>* kLanes;  // elements of a load
template <typename T>
using Registers = Lanes[kRegisters<T>];

template <std::int64_t n>
using Constant = std::integral_constant<std::int64_t, n>;

// `lanes` of kWidth elements; those that are not there are 0.
FLEETRUN_INLINE void load(Registers<float>& row, const float* from, std::int64_t lanes) {
  if (lanes < kLanes) row[0] = Lanes{};
  std::memcpy(&row[0], from, static_cast<std::size_t>(lanes) * sizeof(float));
}

FLEETRUN_INLINE void load(Registers<Bf16>& row, const Bf16* from, std::int64_t lanes) {
  Unsigned words{};
  std::memcpy(&words, from, static_cast<std::size_t>(lanes) * sizeof(Bf16));
  const Unsigned even = words << 16, odd = words & 0xffff0000U;
  std::memcpy(&row[0], &even, sizeof even);
  std::memcpy(&row[1], &odd, sizeof odd);
}

// All ones where an element is not a number, else 0.
FLEETRUN_INLINE void find_nan(Bits& nan, const Bits& bits) { nan = (0x7f800000 - (bits & 0x7fffffff)) >> 31; }

// The lower half of what is not a number becomes 0, as it is in all that comes of bf16 and of arithmetic.
FLEETRUN_INLINE void shorten_nan(Lanes& row) {
  Bits bits, nan;
  std::memcpy(&bits, &row, sizeof bits);
  find_nan(nan, bits);
  bits = (bits & ~nan) | (0x7fc00000 & nan);
  std::memcpy(&row, &bits, sizeof row);
}

// To what the type holds. For bf16 as f32_to_bf16: to the nearest, ties to even; NaN stays NaN where its lower half is 0.
FLEETRUN_INLINE void round_to(Registers<float>&) {}
FLEETRUN_INLINE void round_to(Registers<Bf16>& row) {
  for (Lanes& of : row) {
    Unsigned bits;
    std::memcpy(&bits, &of, sizeof bits);
    bits = (bits + (bits >> 16 & 1) + 0x7fff) & 0xffff0000U;
    std::memcpy(&of, &bits, sizeof bits);
  }
}

// `lanes` of what the type holds as it is: rounded, or out of memory, or 0.
FLEETRUN_INLINE void store_exact(const Registers<float>& row, float* to, std::int64_t lanes) {
  std::memcpy(to, &row[0], static_cast<std::size_t>(lanes) * sizeof(float));
}
FLEETRUN_INLINE void store_exact(const Registers<Bf16>& row, Bf16* to, std::int64_t lanes) {
  Unsigned even, odd;
  std::memcpy(&even, &row[0], sizeof even);
  std::memcpy(&odd, &row[1], sizeof odd);
  const Unsigned words = even >> 16 | odd;
  std::memcpy(to, &words, static_cast<std::size_t>(lanes) * sizeof(Bf16));
}

// Rounds the row on its way.
template <typename Row, typename T>
FLEETRUN_INLINE void store(Row& row, T* to, std::int64_t lanes) {
  round_to(row);
  store_exact(row, to, lanes);
}

// The larger of both; NaN where one is.
FLEETRUN_INLINE void take_larger(Lanes& best, const Lanes& other) {
  Bits mine, its, less, nan_mine, nan_its;
  const Lanes apart = best - other;
  std::memcpy(&mine, &best, sizeof mine);
  std::memcpy(&its, &other, sizeof its);
  std::memcpy(&less, &apart, sizeof less);
  find_nan(nan_mine, mine);
  find_nan(nan_its, its);
  mine ^= (mine ^ its) & ((less >> 31 & ~nan_mine) | nan_its);
  std::memcpy(&best, &mine, sizeof best);
}

// Where x has the bits of y, what is left goes over to the sum.
FLEETRUN_INLINE void give_where_same(Lanes& sum, Lanes& left, const Lanes& x, const Lanes& y) {
  Unsigned apart, other;
  Bits given, kept;
  Lanes gift;
  std::memcpy(&apart, &x, sizeof apart);
  std::memcpy(&other, &y, sizeof other);
  std::memcpy(&kept, &left, sizeof kept);
  apart ^= other;
  const Bits differ = (Bits)(apart | (0U - apart)) >> 31;  // all ones where they do
  given = kept & ~differ;
  kept &= differ;
  std::memcpy(&gift, &given, sizeof gift);
  std::memcpy(&left, &kept, sizeof left);
  sum += gift;
}

// A negative element becomes 0; NaN stays NaN. The bits of what is negative and a number are those from that of -0 to that of
// -Inf: so is what is still negative after adding as much as -Inf needs to come to -1.
FLEETRUN_INLINE void relu(Lanes& row) {
  Bits bits;
  std::memcpy(&bits, &row, sizeof bits);
  const Unsigned moved = (Unsigned)bits + 0x7fffff;
  bits &= ~((bits & (Bits)moved) >> 31);
  std::memcpy(&row, &bits, sizeof row);
}

// What stands where y is not above 0 becomes 0. The bits of what is above 0 are those from 1 to that of Inf.
FLEETRUN_INLINE void keep_where_positive(Lanes& row, const Lanes& y) {
  Unsigned bits;
  Bits kept;
  std::memcpy(&bits, &y, sizeof bits);
  std::memcpy(&kept, &row, sizeof kept);
  bits -= 1;
  kept &= ~((Bits)(bits | (0x7f7fffff - bits)) >> 31);
  std::memcpy(&row, &kept, sizeof row);
}

}  // namespace fleetrun::runtime::cpu
