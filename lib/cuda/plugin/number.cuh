// Elements as kernels see them: stored as f32, f16 or bf16, computed in f32, read and written 16 bytes or kWide elements at a
// time.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/number.h"

namespace fleetrun::cuda {

// Calls body.operator()<T>() with the type that stores such elements.
template <typename Body>
void for_type(Number type, const Body& body) {
  switch (type) {
    case Number::f16:
      return body.template operator()<__half>();
    case Number::bf16:
      return body.template operator()<__nv_bfloat16>();
    case Number::f32:
      return body.template operator()<float>();
  }
}

// The same for kernels that only move elements of so many bytes.
template <typename Body>
void for_bytes(int bytes, const Body& body) {
  if (bytes == 2) return body.template operator()<std::uint16_t>();
  body.template operator()<std::uint32_t>();
}

// In one access.
constexpr int kPackBytes = 16;
template <typename T>
constexpr int kPack = kPackBytes / static_cast<int>(sizeof(T));  // elements

// N elements as they lie; N is kPack<T>, at an address divisible by 16, or 1.
template <typename T, int N>
struct Pack {
  static_assert(N == 1 || N == kPack<T>);
  using Raw = std::conditional_t<N == 1, T, uint4>;
  Raw raw;

  static __device__ Pack read(const T* from) { return {*reinterpret_cast<const Raw*>(from)}; }
  __device__ void write(T* to) const { *reinterpret_cast<Raw*>(to) = raw; }

  __device__ float operator[](int i) const { return static_cast<float>(reinterpret_cast<const T*>(&raw)[i]); }
  __device__ void set(int i, float value) {
    reinterpret_cast<T*>(&raw)[i] = static_cast<T>(value);
  }  // rounds to nearest
};

// Elements that a thread takes at once where arrays of unlike types go together: 16 bytes of f32.
constexpr int kWide = 4;

// N elements at an address that is a multiple of their size.
template <typename T, int N>
struct alignas(sizeof(T) * N) SideBySide {
  T of[N];
};

// Loads the N elements of type T from `at` on, a multiple of N, as f32.
template <typename T, int N>
__device__ void load(const void* data, std::int64_t at, float (&values)[N]) {
  const auto raw = *reinterpret_cast<const SideBySide<T, N>*>(static_cast<const T*>(data) + at);
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = static_cast<float>(raw.of[i]);
}

template <typename T, int N>
__device__ void store(void* data, std::int64_t at, const float (&values)[N]) {
  SideBySide<T, N> raw;
#pragma unroll
  for (int i = 0; i < N; ++i) raw.of[i] = static_cast<T>(values[i]);
  *reinterpret_cast<SideBySide<T, N>*>(static_cast<T*>(data) + at) = raw;
}

}  // namespace fleetrun::cuda
