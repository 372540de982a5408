// What kernels share that look at each element by itself, one or kWide at a time.
#pragma once
#include <utility>

#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/number.cuh"

namespace fleetrun::cuda {

// body(i) for each i below count. A comment beside each caller says the bytes per element of its body and the predicted
// share of the memory bandwidth.
template <typename Body>
__global__ void each_index(Body body, std::int64_t count) {
  FLEETRUN_EACH(i, count) body(i);
}

template <typename Body>
void run_each(std::int64_t count, cudaStream_t stream, const Body& body) {
  start_elements(each_index<Body>, count, stream, body);
}

// NaN stays NaN: every comparison with it is false.
__device__ inline float relu_of(float x) { return x < 0.0F ? 0.0F : x; }

// Calls work(std::integral_constant) with the number of elements that a thread takes at once.
template <typename Work>
void with_width(bool in_wide, const Work& work) {
  if (in_wide) return work(std::integral_constant<int, kWide>());
  work(std::integral_constant<int, 1>());
}

}  // namespace fleetrun::cuda
