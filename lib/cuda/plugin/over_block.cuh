// Sums and the like over the threads of a block, in an order that is always the same.
#pragma once
#include "cuda/plugin/grid.cuh"

namespace fleetrun::cuda {

// Combines what the threads of a block have whose numbers differ by multiples of `lanes`, a power of two; each gets the
// result of its lane. `shared` has kThreads places.
template <int lanes = 1, typename T, typename Combine>
__device__ T over_block(T mine, T* shared, const Combine& combine) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half >= lanes; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = shared[threadIdx.x % lanes];
  __syncthreads();
  return result;
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct TwoSums {
  double first, second;
};

__device__ inline TwoSums operator+(const TwoSums& a, const TwoSums& b) {
  return {a.first + b.first, a.second + b.second};
}

}  // namespace fleetrun::cuda
