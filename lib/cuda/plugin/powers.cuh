// The powers of Adam and LAMB after a step. All chunks of a parameter read them, so they change in a launch of their own.
#pragma once
#include "cuda/plugin/multi_tensor.cuh"

namespace fleetrun::cuda {

// One thread for each tensor; its powers are the arrays 4 and 5. 8 bytes read and 8 written per tensor.
// Predicted share of the memory bandwidth: below 0.01, because its launch takes longer than moving the bytes.
template <typename Tables>
__global__ void decay_powers(const __grid_constant__ Tables table, float beta1, float beta2,
                             std::int64_t tensors) {
  FLEETRUN_EACH(i, tensors) {
    *static_cast<float*>(table.data[4][i]) *= beta1;
    *static_cast<float*>(table.data[5][i]) *= beta2;
  }
}

inline void start_powers(TensorList<6> tensors, float beta1, float beta2, cudaStream_t stream) {
  start_tables(tensors, [&](const auto& table, int) {
    using Tables = std::remove_cvref_t<decltype(table)>;
    start_elements(decay_powers<Tables>, std::int64_t{table.tensors}, stream, table, beta1, beta2);
  });
}

}  // namespace fleetrun::cuda
