// What kernels with norms share.
#pragma once
#include "cuda/plugin/multi_tensor.cuh"

namespace fleetrun::cuda {

// Scratch memory: a number for each tensor, and the sums of its chunks.
struct NormScratch {
  TwoSums* sums;
  float* numbers;
};

inline NormScratch places_in(void* scratch, std::size_t tensors) {
  auto* const numbers = static_cast<float*>(scratch);
  const std::size_t whole =
      (tensors * sizeof(float) + alignof(TwoSums) - 1) / alignof(TwoSums) * alignof(TwoSums);
  return {reinterpret_cast<TwoSums*>(static_cast<std::byte*>(scratch) + whole), numbers};
}

// The square of a float is exact in a double.
template <int n>
__device__ void add_squares(const float (&values)[n], double& sum) {
#pragma unroll
  for (int i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
}

}  // namespace fleetrun::cuda
