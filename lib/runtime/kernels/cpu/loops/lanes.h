// Elements of f32 or bf16 in vector registers, computed with as f32: for loops that are compiled for several instruction sets
// (base/number/vector_clones.h), in whose bodies all of this is inlined.
//
// Masks are made by arithmetic on the bits of elements, since gcc makes comparisons of rows that are wider than a register of
// the oldest instruction set lane by lane.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/narrow.h"

namespace fleetrun::runtime::cpu {

constexpr int kLanes = 16;       // floats of the widest vector register
constexpr int kFewestLanes = 8;  // channels of oneDNN's smallest blocks

// So many elements in a register, or in as many as the processor needs.
template <int lanes>
struct Vector {
  typedef float Floats __attribute__((vector_size(lanes * sizeof(float))));         // NOLINT: gcc ignores the
  typedef std::int32_t Bits __attribute__((vector_size(lanes * sizeof(float))));    // attribute in a `using`
  typedef std::uint32_t Words __attribute__((vector_size(lanes * sizeof(float))));  // of a template
};

// The vector of bits of a vector of floats.
template <typename Floats>
using BitsOf = typename Vector<sizeof(Floats) / sizeof(float)>::Bits;
template <typename Floats>
using WordsOf = typename Vector<sizeof(Floats) / sizeof(float)>::Words;

// `width` elements of T as f32. Elements of bf16 fill two registers, one with those at even places and one with those at odd
// places: a word of memory holds one of each, which a shift and a mask part. So factors and sums of bf16 are in that order, too,
// inside these loops. Never passed to a function that is not inlined.
template <typename T, int width>
struct Row {
  static constexpr int kRegisters = std::is_same_v<T, Bf16> ? 2 : 1;
  using Register = typename Vector<width / kRegisters>::Floats;

  Register of[kRegisters];
};

// Elements of the widest load: of whole registers.
template <typename T>
constexpr int kWidest = Row<T, kLanes>::kRegisters* kLanes;

template <std::int64_t n>
using Constant = std::integral_constant<std::int64_t, n>;

// body(first element, Constant<width>) for the loads of less than the widest, of whole registers, that fit between `done` and
// `count`. Moves `done` on: what is left is less than kFewestLanes.
template <typename T, typename Body>
FLEETRUN_VECTOR_LOOP void each_narrower_load(std::int64_t& done, std::int64_t count, Body&& body) {
  const auto take = [&](auto width) __attribute__((always_inline)) {
    if (count - done < width) return;
    body(std::int64_t{done}, width);
    done += width;
  };
  if constexpr (kWidest < T >> kLanes) take(Constant<kLanes>());
  take(Constant<kFewestLanes>());
}

// Loops call this before loads and stores of a number of elements that the compiler does not know, which take a call each. No
// layout of blocks of channels needs them, which a test makes sure of.
void meet_remainder();
std::int64_t remainders_met();

// body(0), body(1), ... with constants: gcc keeps an array in registers only if it never sees another index.
template <int times, typename Body>
FLEETRUN_VECTOR_LOOP void repeat(Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(Constant<i>()), ...);
  }
  (std::make_integer_sequence<int, times>());
}

// `count` of the row's elements; those that are not there are 0.
template <int width>
FLEETRUN_VECTOR_LOOP void load(Row<float, width>& row, const float* from, std::int64_t count) {
  if (count < width) row.of[0] = typename Row<float, width>::Register{};
  std::memcpy(&row.of[0], from, static_cast<std::size_t>(count) * sizeof(float));
}

template <int width>
FLEETRUN_VECTOR_LOOP void load(Row<Bf16, width>& row, const Bf16* from, std::int64_t count) {
  typename Vector<width / 2>::Words words{};
  std::memcpy(&words, from, static_cast<std::size_t>(count) * sizeof(Bf16));
  const typename Vector<width / 2>::Words even = words << 16, odd = words & 0xffff0000U;
  std::memcpy(&row.of[0], &even, sizeof even);
  std::memcpy(&row.of[1], &odd, sizeof odd);
}

// A row as it is in registers, in memory and back: each register by itself, since gcc copies a struct of them in small pieces.
template <typename T, int width>
FLEETRUN_VECTOR_LOOP void fetch(Row<T, width>& row, const float* from) {
  repeat<Row<T, width>::kRegisters>([&](auto i) __attribute__((always_inline)) {
    std::memcpy(&row.of[i], from + i * (width / Row<T, width>::kRegisters), sizeof row.of[i]);
  });
}
template <typename T, int width>
FLEETRUN_VECTOR_LOOP void keep(const Row<T, width>& row, float* to) {
  repeat<Row<T, width>::kRegisters>([&](auto i) __attribute__((always_inline)) {
    std::memcpy(to + i * (width / Row<T, width>::kRegisters), &row.of[i], sizeof row.of[i]);
  });
}

// Floats in the order of memory to that of a row's registers, and back.
template <int width>
FLEETRUN_VECTOR_LOOP void part(Row<float, width>&) {}
template <int width>
FLEETRUN_VECTOR_LOOP void join(Row<float, width>&) {}

// Where the elements of a register come from, among those of two.
template <int lanes, typename = std::make_integer_sequence<int, lanes>>
struct Places;
template <int lanes, int... i>
struct Places<lanes, std::integer_sequence<int, i...>> {
  using Bits = typename Vector<lanes>::Bits;
  static constexpr Bits kEven = {2 * i...};
  static constexpr Bits kAlternating = {i / 2 + i % 2 * lanes...};
};

template <int width>
FLEETRUN_VECTOR_LOOP void part(Row<Bf16, width>& row) {
  constexpr auto& kEven = Places<width / 2>::kEven;
  const auto even = __builtin_shuffle(row.of[0], row.of[1], kEven);
  row.of[1] = __builtin_shuffle(row.of[0], row.of[1], kEven + 1);
  row.of[0] = even;
}
template <int width>
FLEETRUN_VECTOR_LOOP void join(Row<Bf16, width>& row) {
  constexpr int kEach = width / 2;
  constexpr auto& kFirst = Places<kEach>::kAlternating;
  const auto first = __builtin_shuffle(row.of[0], row.of[1], kFirst);
  row.of[1] = __builtin_shuffle(row.of[0], row.of[1], kFirst + kEach / 2);
  row.of[0] = first;
}

// All ones where an element is not a number, else 0.
template <typename Bits>
FLEETRUN_VECTOR_LOOP void find_nan(Bits& nan, const Bits& bits) {
  nan = (0x7f800000 - (bits & 0x7fffffff)) >> 31;
}

// The lower half of what is not a number becomes 0, as it is in all that comes of bf16 and of arithmetic.
template <typename Floats>
FLEETRUN_VECTOR_LOOP void shorten_nan(Floats& row) {
  BitsOf<Floats> bits, nan;
  std::memcpy(&bits, &row, sizeof bits);
  find_nan(nan, bits);
  bits = (bits & ~nan) | (0x7fc00000 & nan);
  std::memcpy(&row, &bits, sizeof row);
}

// To what the type holds. For bf16 as f32_to_bf16: to the nearest, ties to even; NaN stays NaN where its lower half is 0.
template <int width>
FLEETRUN_VECTOR_LOOP void round_to(Row<float, width>&) {}
template <int width>
FLEETRUN_VECTOR_LOOP void round_to(Row<Bf16, width>& row) {
  repeat<2>([&](auto i) __attribute__((always_inline)) {
    typename Vector<width / 2>::Words bits;
    std::memcpy(&bits, &row.of[i], sizeof bits);
    bits = (bits + (bits >> 16 & 1) + 0x7fff) & 0xffff0000U;
    std::memcpy(&row.of[i], &bits, sizeof bits);
  });
}

// `count` elements of what the type holds as it is: rounded, or out of memory, or 0.
template <int width>
FLEETRUN_VECTOR_LOOP void store_exact(const Row<float, width>& row, float* to, std::int64_t count) {
  std::memcpy(to, &row.of[0], static_cast<std::size_t>(count) * sizeof(float));
}
template <int width>
FLEETRUN_VECTOR_LOOP void store_exact(const Row<Bf16, width>& row, Bf16* to, std::int64_t count) {
  typename Vector<width / 2>::Words even, odd;
  std::memcpy(&even, &row.of[0], sizeof even);
  std::memcpy(&odd, &row.of[1], sizeof odd);
  const typename Vector<width / 2>::Words words = even >> 16 | odd;
  std::memcpy(to, &words, static_cast<std::size_t>(count) * sizeof(Bf16));
}

// Rounds the row on its way.
template <typename T, int width>
FLEETRUN_VECTOR_LOOP void store(Row<T, width>& row, T* to, std::int64_t count) {
  round_to(row);
  store_exact(row, to, count);
}

// The larger of both; NaN where one is.
template <typename Floats>
FLEETRUN_VECTOR_LOOP void take_larger(Floats& best, const Floats& other) {
  BitsOf<Floats> mine, its, less, nan_mine, nan_its;
  const Floats apart = best - other;
  std::memcpy(&mine, &best, sizeof mine);
  std::memcpy(&its, &other, sizeof its);
  std::memcpy(&less, &apart, sizeof less);
  find_nan(nan_mine, mine);
  find_nan(nan_its, its);
  mine ^= (mine ^ its) & ((less >> 31 & ~nan_mine) | nan_its);
  std::memcpy(&best, &mine, sizeof best);
}

// Where x has the bits of y, what is left goes over to the sum.
template <typename Floats>
FLEETRUN_VECTOR_LOOP void give_where_same(Floats& sum, Floats& left, const Floats& x, const Floats& y) {
  WordsOf<Floats> apart, other;
  BitsOf<Floats> given, kept;
  Floats gift;
  std::memcpy(&apart, &x, sizeof apart);
  std::memcpy(&other, &y, sizeof other);
  std::memcpy(&kept, &left, sizeof kept);
  apart ^= other;
  const auto differ = (BitsOf<Floats>)(apart | (0U - apart)) >> 31;  // all ones where they do
  given = kept & ~differ;
  kept &= differ;
  std::memcpy(&gift, &given, sizeof gift);
  std::memcpy(&left, &kept, sizeof left);
  sum += gift;
}

// A negative element becomes 0; NaN stays NaN. The bits of what is negative and a number are those from that of -0 to that of
// -Inf: so is what is still negative after adding the distance from -Inf to -1.
template <typename Floats>
FLEETRUN_VECTOR_LOOP void relu(Floats& row) {
  BitsOf<Floats> bits;
  std::memcpy(&bits, &row, sizeof bits);
  const WordsOf<Floats> moved = (WordsOf<Floats>)bits + 0x7fffff;
  bits &= ~((bits & (BitsOf<Floats>)moved) >> 31);
  std::memcpy(&row, &bits, sizeof row);
}

// What stands where y is not above 0 becomes 0. The bits of what is above 0 are those from 1 to that of Inf.
template <typename Floats>
FLEETRUN_VECTOR_LOOP void keep_where_positive(Floats& row, const Floats& y) {
  WordsOf<Floats> bits;
  BitsOf<Floats> kept;
  std::memcpy(&bits, &y, sizeof bits);
  std::memcpy(&kept, &row, sizeof kept);
  bits -= 1;
  kept &= ~((BitsOf<Floats>)(bits | (0x7f7fffff - bits)) >> 31);
  std::memcpy(&row, &kept, sizeof row);
}

}  // namespace fleetrun::runtime::cpu
