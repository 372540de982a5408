// What kernels need that look at each element by itself, several at a time. Their number is the same for all types, so that arrays of unlike
// types go together; Pack of number.cuh always takes 16 bytes.
#pragma once
#include <utility>

#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/number.cuh"

namespace fleetrun::cuda {

// body(i) for each i below count.
template <typename Body>
__global__ void each_index(Body body, std::int64_t count) {
  FLEETRUN_EACH(i, count) body(i);
}

template <typename Body>
void run_each(std::int64_t count, cudaStream_t stream, const Body& body) {
  start_elements(each_index<Body>, count, stream, body);
}

constexpr int kWide = 4;  // elements that a thread loads at once

// Elements side by side, in f32 while a kernel works on them.
template <int width>
struct Wide {
  float of[width];
};

template <typename T, int width>
struct alignas(sizeof(T) * width) SideBySide {
  T of[width];
};

// The i-th `width` elements of an array.
template <int width, typename T>
__device__ Wide<width> load(const T* from, std::int64_t i) {
  const auto raw = reinterpret_cast<const SideBySide<T, width>*>(from)[i];
  Wide<width> wide;
  for (int k = 0; k < width; ++k) wide.of[k] = static_cast<float>(raw.of[k]);
  return wide;
}

template <int width, typename T>
__device__ void store(T* to, std::int64_t i, const Wide<width>& wide) {
  SideBySide<T, width> raw;
  for (int k = 0; k < width; ++k) raw.of[k] = static_cast<T>(wide.of[k]);
  reinterpret_cast<SideBySide<T, width>*>(to)[i] = raw;
}

// Calls work(std::integral_constant) with the number of elements that a thread takes at once.
template <typename Work>
void with_width(bool in_wide, const Work& work) {
  if (in_wide) return work(std::integral_constant<int, kWide>());
  work(std::integral_constant<int, 1>());
}

}  // namespace fleetrun::cuda
