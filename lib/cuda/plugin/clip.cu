// Kernels that limit gradients. Norms are sums of doubles in a fixed order: one for each chunk, then one for each tensor.
#include <cmath>

#include "cuda/plugin/norms.cuh"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

// 4 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.83.
struct LimitBody {
  static constexpr int kArrays = 1;
  struct Step {};
  float limit;

  __device__ Step step(const Chunk<1>&) const { return {}; }
  static __device__ bool is_idle(const Step&) { return false; }

  // NaN stays NaN: every comparison with it is false.
  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&) const {
    float grad[n];
    load<float>(data[0], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float below = grad[i] > limit ? limit : grad[i];
      grad[i] = below < -limit ? -limit : below;
    }
    store<float>(data[0], at, grad);
  }
};

// 4 bytes read and 4 written per element where the factor is not 1, else none.
// Predicted share of the memory bandwidth: 0.83.
struct ScaleBody {
  static constexpr int kArrays = 1;
  struct Step {
    float factor;
  };
  const float* factors;
  int each;  // 1: every tensor has a factor of its own, 0: one for all

  __device__ Step step(const Chunk<1>& tensor) const { return {factors[tensor.tensor * each]}; }
  static __device__ bool is_idle(const Step& step) { return step.factor == 1.0F; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float grad[n];
    load<float>(data[0], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) grad[i] *= step.factor;
    store<float>(data[0], at, grad);
  }
};

// 4 bytes read per element. Predicted share of the memory bandwidth: 0.7, because each block waits for its sum.
struct SquaresBody {
  static constexpr int kArrays = 1;
  struct Step {};

  __device__ Step step(const Chunk<1>&) const { return {}; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&, TwoSums& sums) const {
    float grad[n];
    load<float>(data[0], at, grad);
    add_squares(grad, sums.first);
  }
};

// What makes a norm the limit; NaN for NaN.
__device__ float factor_to(double limit, double norm) {
  return norm <= limit ? 1.0F : static_cast<float>(limit / norm);
}

struct KeepFactor {
  float* factors;
  double limit;
  __device__ void operator()(int tensor, const TwoSums& sums) const {
    factors[tensor] = factor_to(limit, sqrt(sums.first));
  }
};

struct KeepNorm {
  float* norms;
  __device__ void operator()(int tensor, const TwoSums& sums) const {
    norms[tensor] = static_cast<float>(sqrt(sums.first));
  }
};

// One block. 4 bytes read per tensor. Predicted share of the memory bandwidth: below 0.01, because its launch takes
// longer than moving the bytes.
__global__ void factor_of_all(GlobalNorm norm, float* factor) {
  __shared__ double doubles[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < norm.count; i += kThreads) {
    const auto one = static_cast<double>(norm.norms[i]);
    sum += one * one;
  }
  sum = over_block(sum, doubles, Sum());
  if (threadIdx.x == 0) *factor = factor_to(norm.limit, sqrt(sum));
}

}  // namespace

std::size_t norm_scratch_bytes(std::size_t tensors, std::int64_t elements) {
  const std::size_t chunks =
      static_cast<std::size_t>(elements / kChunk) + tensors;  // each may have one that is not full
  return (chunks + 1) * sizeof(TwoSums) + tensors * sizeof(float);
}

void clip_by_value(TensorList<1> tensors, float limit, cudaStream_t stream) {
  start_update(tensors, LimitBody{limit}, stream);
}

void clip_by_norm(TensorList<1> tensors, double limit, void* scratch, cudaStream_t stream) {
  const NormScratch places = places_in(scratch, tensors.size());
  start_sums(tensors, SquaresBody{}, places.sums, KeepFactor{places.numbers, limit}, stream);
  start_update(tensors, ScaleBody{places.numbers, 1}, stream);
}

void gradient_norms(TensorList<1> tensors, float* norms, void* scratch, cudaStream_t stream) {
  start_sums(tensors, SquaresBody{}, places_in(scratch, tensors.size()).sums, KeepNorm{norms}, stream);
}

void clip_by_global_norm(TensorList<1> tensors, const GlobalNorm& norm, float* scratch, cudaStream_t stream) {
  start_blocks(factor_of_all, 1, stream, norm, scratch);
  start_update(tensors, ScaleBody{scratch, 0}, stream);
}

}  // namespace fleetrun::cuda
