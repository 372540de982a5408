#include "runtime/kernels/cpu/loops/narrow.h"

#include "base/number/half.h"
#include "base/number/vector_clones.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define FLEETRUN_BF16_INSTRUCTIONS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#endif

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void widen_anywhere(const Bf16* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(from[i]);
}

FLEETRUN_VECTOR_LOOP void narrow_anywhere(const float* from, Bf16* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = f32_to_bf16(from[i]);
}

#ifdef FLEETRUN_BF16_INSTRUCTIONS

constexpr int kFloats = 16;  // floats of a register

FLEETRUN_BF16_INSTRUCTIONS inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << count) - 1U);
}

// With a mask of all lanes, which costs nothing: gcc 12 warns of those without one.
FLEETRUN_BF16_INSTRUCTIONS inline __m512i widened(__m256i bits) {
  constexpr __mmask16 kAll = 0xffff;
  return _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, bits), 16);
}

FLEETRUN_BF16_INSTRUCTIONS inline void widen_row(const Bf16* from, float* to) {
  _mm512_storeu_si512(to, widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}

FLEETRUN_BF16_INSTRUCTIONS inline void narrow_row(const float* from, Bf16* to) {
  const __m256bh bits = _mm512_cvtneps_pbh(_mm512_loadu_ps(from));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)bits);  // NOLINT: the only conversion there is
}

FLEETRUN_BF16_INSTRUCTIONS inline void widen_part(const Bf16* from, float* to, __mmask16 lanes) {
  _mm512_mask_storeu_epi32(to, lanes, widened(_mm256_maskz_loadu_epi16(lanes, from)));
}

FLEETRUN_BF16_INSTRUCTIONS inline void narrow_part(const float* from, Bf16* to, __mmask16 lanes) {
  const __m256bh bits = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, from));
  _mm256_mask_storeu_epi16(to, lanes, (__m256i)bits);  // NOLINT: as above
}

FLEETRUN_BF16_INSTRUCTIONS void widen_here(const Bf16* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) widen_row(from + i, to + i);
  if (i < count) widen_part(from + i, to + i, first_lanes(count - i));
}

FLEETRUN_BF16_INSTRUCTIONS void narrow_here(const float* from, Bf16* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) narrow_row(from + i, to + i);
  if (i < count) narrow_part(from + i, to + i, first_lanes(count - i));
}

#endif

bool has_bf16_instructions() { return vector_level() == VectorLevel::avx512_bf16; }

}  // namespace

void widen(const Bf16* from, float* to, std::int64_t count) {
#ifdef FLEETRUN_BF16_INSTRUCTIONS
  if (has_bf16_instructions()) return widen_here(from, to, count);
#endif
  vector_clones<widen_anywhere>(from, to, count);
}

void narrow(const float* from, Bf16* to, std::int64_t count) {
#ifdef FLEETRUN_BF16_INSTRUCTIONS
  if (has_bf16_instructions()) return narrow_here(from, to, count);
#endif
  vector_clones<narrow_anywhere>(from, to, count);
}

}  // namespace fleetrun::runtime::cpu
