// Sums and the like over the threads of a block, always in the same order.
#pragma once
#include "cuda/plugin/grid.cuh"

namespace fleetrun::cuda {

// Of all threads of a block, to all of them. `shared` has kThreads places.
template <typename T, typename Combine>
__device__ T over_block(T mine, T* shared, const Combine& combine) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();
  return result;
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace fleetrun::cuda
