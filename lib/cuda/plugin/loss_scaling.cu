// Kernels of strategy.amp's loss scaling, and of gradient_merge. Whether a step overflowed stays on the device: kernels that
// depend on it look there.
#include <cfloat>
#include <cmath>

#include "cuda/plugin/multi_tensor.cuh"
#include "cuda/plugin/number.cuh"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

// b bytes of x read and 4 written per element. Predicted share of the memory bandwidth: 0.83.
template <typename T>
struct CheckBody {
  static constexpr int kArrays = 2;
  struct Step {
    float inverse;
  };
  const float* scale;
  float* found;

  __device__ Step step(const Chunk<2>&) const { return {1.0F / *scale}; }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float x[n];
    load<T>(data[0], at, x);
    bool numbers = true;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      numbers = numbers && fabsf(x[i]) <= FLT_MAX;
      x[i] *= step.inverse;
    }
    store<float>(data[1], at, x);
    if (!numbers) *found = 1.0F;  // all threads write the same value
  }
};

// 4 bytes written per element after an overflow, else none. Predicted share of the memory bandwidth: 0.83.
struct ZeroBody {
  static constexpr int kArrays = 1;
  struct Step {
    bool overflow;
  };
  const float* found;

  __device__ Step step(const Chunk<1>&) const { return {*found > 0}; }
  static __device__ bool is_idle(const Step& step) { return !step.overflow; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&) const {
    const float zeros[n] = {};
    store<float>(data[0], at, zeros);
  }
};

// 4 + b bytes read and 4 written per element, and b more written in a step that hands over.
// Predicted share of the memory bandwidth: 0.83.
template <typename T>
struct MergeBody {
  static constexpr int kArrays = 3;
  struct Step {};
  Merge merge;

  __device__ Step step(const Chunk<3>&) const { return {}; }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&) const {
    float merged[n], grad[n];
    load<float>(data[0], at, merged);
    load<T>(data[1], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      merged[i] += grad[i];
      grad[i] = merged[i] * merge.scale;
      if (merge.hands_over) merged[i] = 0.0F;
    }
    store<float>(data[0], at, merged);
    if (merge.hands_over) store<T>(data[2], at, grad);
  }
};

// 8 bytes read and 4 written, of one element. Predicted share of the memory bandwidth: below 0.01, because its launch
// takes longer than moving the bytes.
__global__ void multiply(const float* x, const float* y, float* product, std::int64_t count) {
  FLEETRUN_EACH(i, count) product[i] = x[i] * y[i];
}

// One thread. At most 12 bytes read and 12 written. Predicted share of the memory bandwidth: below 0.01, because its
// launch takes longer than moving the bytes.
__global__ void follow_steps(LossScale state, LossScaling settings, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    if (state.found[i] > 0) {
      state.good[i] = 0;
      state.bad[i] += 1;
      if (state.bad[i] != settings.decr_every) continue;
      state.scale[i] = fmaxf(state.scale[i] * settings.decr_ratio, 1.0F);
      state.bad[i] = 0;
    } else {
      state.bad[i] = 0;
      state.good[i] += 1;
      if (state.good[i] != settings.incr_every) continue;
      const float larger = state.scale[i] * settings.incr_ratio;
      if (fabsf(larger) <= FLT_MAX) state.scale[i] = larger;
      state.good[i] = 0;
    }
  }
}

}  // namespace

void scale_loss(const float* x, const float* scale, float* y, cudaStream_t stream) {
  start_elements(multiply, 1, stream, x, scale, y);
}

void check_finite_and_unscale(TensorList<2> tensors, Number of_x, const float* scale, float* found,
                              cudaStream_t stream) {
  for_type(of_x, [&]<typename T>() { start_update(tensors, CheckBody<T>{scale, found}, stream); });
}

void update_loss_scaling(const LossScale& state, const LossScaling& settings, cudaStream_t stream) {
  start_elements(follow_steps, 1, stream, state, settings);
}

void zero_on_overflow(TensorList<1> tensors, const float* found, cudaStream_t stream) {
  start_update(tensors, ZeroBody{found}, stream);
}

void merge_gradient(TensorList<3> tensors, Number of_grad, const Merge& merge, cudaStream_t stream) {
  for_type(of_grad, [&]<typename T>() { start_update(tensors, MergeBody<T>{merge}, stream); });
}

}  // namespace fleetrun::cuda
