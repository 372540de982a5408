// Optimizers that give each parameter a learning rate from norms: three launches, the first two for the norms. LAMB's powers are one
// launch more.
#include <cmath>

#include "cuda/plugin/norms.cuh"
#include "cuda/plugin/powers.cuh"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

// 8 bytes read per element. Predicted share of the memory bandwidth: 0.7, because each block waits for its sum.
struct LarsSquares {
  static constexpr int kArrays = 3;
  struct Step {};

  __device__ Step step(const Chunk<3>&) const { return {}; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&, TwoSums& sums) const {
    float param[n], grad[n];
    load<float>(data[0], at, param);
    load<float>(data[2], at, grad);
    add_squares(param, sums.first);
    add_squares(grad, sums.second);
  }
};

struct KeepLarsRate {
  float* rates;
  const float* rate;
  Lars settings;

  __device__ void operator()(int tensor, const TwoSums& sums) const {
    const double param = sqrt(sums.first), grad = sqrt(sums.second);
    const bool scaled = settings.decay > 0 && param > 0 && grad > 0;
    rates[tensor] = scaled ? static_cast<float>(static_cast<double>(*rate) * settings.coeff * param /
                                                (grad + settings.decay * param + settings.epsilon))
                           : *rate;
  }
};

// 12 bytes read and 8 written per element. Predicted share of the memory bandwidth: 0.83.
struct LarsBody {
  static constexpr int kArrays = 3;
  struct Step {
    float rate;
  };
  const float* rates;
  float mu, decay;

  __device__ Step step(const Chunk<3>& tensor) const { return {rates[tensor.tensor]}; }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float param[n], velocity[n], grad[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, velocity);
    load<float>(data[2], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      velocity[i] = mu * velocity[i] + step.rate * (grad[i] + decay * param[i]);
      param[i] -= velocity[i];
    }
    store<float>(data[0], at, param);
    store<float>(data[1], at, velocity);
  }
};

// What is the same for all elements of a parameter.
struct LambStep {
  float of_moment1, of_moment2;  // 1 / (1 - beta^t)
  float rate;                    // in the last launch
};

__device__ LambStep lamb_step(const Chunk<6>& tensor, float rate) {
  const double pow1 = *static_cast<const float*>(tensor.data[4]);
  const double pow2 = *static_cast<const float*>(tensor.data[5]);
  return {static_cast<float>(1.0 / (1.0 - pow1)), static_cast<float>(1.0 / (1.0 - pow2)), rate};
}

__device__ float lamb_direction(float param, float moment1, float moment2, const Lamb& settings,
                                const LambStep& step) {
  return moment1 * step.of_moment1 / (sqrtf(moment2 * step.of_moment2) + settings.epsilon) +
         settings.decay * param;
}

// Moves the moments. 16 bytes read and 8 written per element. Predicted share of the memory bandwidth: 0.7, because each
// block waits for its sum.
struct LambSquares {
  static constexpr int kArrays = 4;
  using Step = LambStep;
  Lamb settings;

  __device__ Step step(const Chunk<6>& tensor) const { return lamb_step(tensor, 0.0F); }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step, TwoSums& sums) const {
    float param[n], moment1[n], moment2[n], grad[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, moment1);
    load<float>(data[2], at, moment2);
    load<float>(data[3], at, grad);
    add_squares(param, sums.first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      moment1[i] = settings.beta1 * moment1[i] + settings.rest1 * grad[i];
      moment2[i] = settings.beta2 * moment2[i] + settings.rest2 * grad[i] * grad[i];
      param[i] = lamb_direction(param[i], moment1[i], moment2[i], settings, step);
    }
    add_squares(param, sums.second);
    store<float>(data[1], at, moment1);
    store<float>(data[2], at, moment2);
  }
};

struct KeepLambRate {
  float* rates;
  const float* rate;

  __device__ void operator()(int tensor, const TwoSums& sums) const {
    const bool scaled = sums.first > 0 && sums.second > 0;
    rates[tensor] = *rate * (scaled ? static_cast<float>(sqrt(sums.first) / sqrt(sums.second)) : 1.0F);
  }
};

// 12 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.83.
struct LambBody {
  static constexpr int kArrays = 3;
  using Step = LambStep;
  const float* rates;
  Lamb settings;

  __device__ Step step(const Chunk<6>& tensor) const { return lamb_step(tensor, rates[tensor.tensor]); }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float param[n], moment1[n], moment2[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, moment1);
    load<float>(data[2], at, moment2);
#pragma unroll
    for (int i = 0; i < n; ++i)
      param[i] -= step.rate * lamb_direction(param[i], moment1[i], moment2[i], settings, step);
    store<float>(data[0], at, param);
  }
};

}  // namespace

void lars(TensorList<3> tensors, const float* rate, const Lars& settings, void* scratch,
          cudaStream_t stream) {
  const NormScratch places = places_in(scratch, tensors.size());
  start_sums(tensors, LarsSquares{}, places.sums, KeepLarsRate{places.numbers, rate, settings}, stream);
  start_update(tensors, LarsBody{places.numbers, settings.mu, static_cast<float>(settings.decay)}, stream);
}

void lamb(TensorList<6> tensors, const float* rate, const Lamb& settings, void* scratch,
          cudaStream_t stream) {
  const NormScratch places = places_in(scratch, tensors.size());
  start_sums(tensors, LambSquares{settings}, places.sums, KeepLambRate{places.numbers, rate}, stream);
  start_update(tensors, LambBody{places.numbers, settings}, stream);
  start_powers(tensors, settings.beta1, settings.beta2, stream);
}

}  // namespace fleetrun::cuda
