// What kernels need that look at each element by itself: element types that a launch chooses, elements loaded several at a
// time, and division by numbers that are the same for all elements.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <utility>

#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {

// Calls work(T()) with the element type T of `number`.
template <typename Work>
void with_type_of(Number number, const Work& work) {
  if (number == Number::f16) return work(__half());
  if (number == Number::bf16) return work(__nv_bfloat16());
  work(float());
}

// body(i) for each i below count.
template <typename Body>
__global__ void each_index(Body body, std::int64_t count) {
  FLEETRUN_EACH(i, count) body(i);
}

template <typename Body>
void run_each(std::int64_t count, cudaStream_t stream, const Body& body) {
  start_elements(each_index<Body>, count, stream, body);
}

constexpr int kPack = 4;  // elements that a thread loads at once

// Elements side by side, in f32 while a kernel works on them.
template <int width>
struct Wide {
  float of[width];
};

template <typename T, int width>
struct alignas(sizeof(T) * width) Pack {
  T of[width];
};

// Pack number i of an array.
template <int width, typename T>
__device__ Wide<width> load(const T* from, std::int64_t i) {
  const Pack<T, width> pack = reinterpret_cast<const Pack<T, width>*>(from)[i];
  Wide<width> wide;
  for (int k = 0; k < width; ++k) wide.of[k] = static_cast<float>(pack.of[k]);
  return wide;
}

template <int width, typename T>
__device__ void store(T* to, std::int64_t i, const Wide<width>& wide) {
  Pack<T, width> pack;
  for (int k = 0; k < width; ++k) pack.of[k] = static_cast<T>(wide.of[k]);
  reinterpret_cast<Pack<T, width>*>(to)[i] = pack;
}

// Calls work(std::integral_constant) with the number of elements that a thread takes at once.
template <typename Work>
void with_width(bool in_packs, const Work& work) {
  if (in_packs) return work(std::integral_constant<int, kPack>());
  work(std::integral_constant<int, 1>());
}

// Divides numbers below 2^31 by a multiplication, where a division would take some twenty instructions.
class Divider {
 public:
  Divider() = default;
  explicit Divider(std::int64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t above = (std::uint64_t{1} << shift_) - divisor_;
    multiplier_ = static_cast<std::uint32_t>((above << 32U) / divisor_ + 1);
  }
  __device__ std::uint32_t quotient(std::uint32_t number) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{number} * multiplier_) >> 32U);
    return (high + number) >> shift_;
  }
  // The quotient; `number` becomes the rest.
  __device__ std::uint32_t divide(std::uint32_t& number) const {
    const std::uint32_t result = quotient(number);
    number -= result * divisor_;
    return result;
  }
  __device__ std::uint32_t rest(std::uint32_t number) const {
    return number - quotient(number) * divisor_;
  }

 private:
  std::uint32_t divisor_ = 1, multiplier_ = 1, shift_ = 0;
};

}  // namespace fleetrun::cuda
