// Updates that look at each element by itself. Each op is one launch, whose bytes of an element are said beside its body;
// Adam's powers are one launch more.
#include <cmath>

#include "cuda/plugin/multi_tensor.cuh"
#include "cuda/plugin/powers.cuh"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

struct Rate {
  float rate;
};

struct Nothing {};

// A body whose step is the learning rate.
struct AtRate {
  using Step = Rate;
  const float* rate;
  template <typename OfTensor>
  __device__ Step step(const OfTensor&) const {
    return {*rate};
  }
  static __device__ bool is_idle(const Step&) { return false; }
};

// A body whose elements need nothing else.
struct ByItself {
  using Step = Nothing;
  template <typename OfTensor>
  __device__ Step step(const OfTensor&) const {
    return {};
  }
  static __device__ bool is_idle(const Step&) { return false; }
};

// 8 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.83.
struct SgdBody : AtRate {
  static constexpr int kArrays = 2;
  float decay;

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float param[n], grad[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) param[i] -= step.rate * (grad[i] + decay * param[i]);
    store<float>(data[0], at, param);
  }
};

// 12 bytes read and 8 written per element. Predicted share of the memory bandwidth: 0.83.
struct MomentumBody : AtRate {
  static constexpr int kArrays = 3;
  Momentum settings;

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float param[n], velocity[n], grad[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, velocity);
    load<float>(data[2], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float g = grad[i] + settings.decay * param[i];
      const float v = settings.mu * velocity[i] + g;
      velocity[i] = v;
      param[i] -= step.rate * (settings.nesterov ? g + settings.mu * v : v);
    }
    store<float>(data[0], at, param);
    store<float>(data[1], at, velocity);
  }
};

// 16 bytes read and 12 written per element. Predicted share of the memory bandwidth: 0.83.
struct AdamBody {
  static constexpr int kArrays = 4;
  struct Step {
    float rate;     // learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
    float epsilon;  // epsilon * sqrt(1 - beta2^t)
    float decay;    // of Adam: the part of a weight that is added to its gradient
    float keep;     // of AdamW: what is left of a weight before the update
  };
  const float* rate;
  Adam settings;

  template <typename OfTensor>
  __device__ Step step(const OfTensor& tensor) const {
    const double learning_rate = *rate;
    const double pow1 = *static_cast<const float*>(tensor.data[4]);
    const double pow2 = *static_cast<const float*>(tensor.data[5]);
    const double correction = sqrt(1.0 - pow2);
    return {static_cast<float>(learning_rate * correction / (1.0 - pow1)),
            static_cast<float>(settings.epsilon * correction),
            settings.decays_weights ? 0.0F : settings.decay,
            settings.decays_weights
                ? static_cast<float>(1.0 - learning_rate * static_cast<double>(settings.decay))
                : 1.0F};
  }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float param[n], moment1[n], moment2[n], grad[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, moment1);
    load<float>(data[2], at, moment2);
    load<float>(data[3], at, grad);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float g = grad[i] + step.decay * param[i];
      moment1[i] = settings.beta1 * moment1[i] + settings.rest1 * g;
      moment2[i] = settings.beta2 * moment2[i] + settings.rest2 * g * g;
      param[i] = step.keep * param[i] - step.rate * (moment1[i] / (sqrtf(moment2[i]) + step.epsilon));
    }
    store<float>(data[0], at, param);
    store<float>(data[1], at, moment1);
    store<float>(data[2], at, moment2);
  }
};

// 8 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.83.
struct AverageBody {
  static constexpr int kArrays = 2;
  using Step = Rate;
  const float* decay_pow;
  float decay;

  template <typename OfTensor>
  __device__ Step step(const OfTensor&) const {
    return {static_cast<float>((1.0 - static_cast<double>(decay)) / (1.0 - static_cast<double>(*decay_pow)))};
  }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step& step) const {
    float average[n], param[n];
    load<float>(data[0], at, average);
    load<float>(data[1], at, param);
#pragma unroll
    for (int i = 0; i < n; ++i) average[i] += step.rate * (param[i] - average[i]);
    store<float>(data[0], at, average);
  }
};

// 8 bytes read and 4 written per element. Predicted share of the memory bandwidth: 0.83.
struct DifferenceBody : ByItself {
  static constexpr int kArrays = 3;

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&) const {
    float param[n], snapshot[n];
    load<float>(data[0], at, param);
    load<float>(data[1], at, snapshot);
#pragma unroll
    for (int i = 0; i < n; ++i) snapshot[i] -= param[i];
    store<float>(data[2], at, snapshot);
  }
};

// 8 bytes read and 8 written per element. Predicted share of the memory bandwidth: 0.83.
struct TakeMeanBody : ByItself {
  static constexpr int kArrays = 3;
  float share;

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&) const {
    float snapshot[n], message[n];
    load<float>(data[1], at, snapshot);
    load<float>(data[2], at, message);
#pragma unroll
    for (int i = 0; i < n; ++i) snapshot[i] -= share * message[i];
    store<float>(data[0], at, snapshot);
    store<float>(data[1], at, snapshot);
  }
};

// 4 bytes read and 4 written, of one number. Predicted share of the memory bandwidth: below 0.01, because its launch
// takes longer than moving the bytes.
__global__ void decay_power(float* power, float decay, std::int64_t count) {
  FLEETRUN_EACH(i, count) power[i] *= decay;
}

}  // namespace

void sgd(TensorList<2> tensors, const float* rate, float decay, cudaStream_t stream) {
  start_update(tensors, SgdBody{{rate}, decay}, stream);
}

void momentum(TensorList<3> tensors, const float* rate, const Momentum& settings, cudaStream_t stream) {
  start_update(tensors, MomentumBody{{rate}, settings}, stream);
}

void adam(TensorList<6> tensors, const float* rate, const Adam& settings, cudaStream_t stream) {
  start_update(tensors, AdamBody{rate, settings}, stream);
  start_powers(tensors, settings.beta1, settings.beta2, stream);
}

void average_weights(TensorList<2> tensors, float* decay_pow, float decay, cudaStream_t stream) {
  start_update(tensors, AverageBody{decay_pow, decay}, stream);
  start_elements(decay_power, 1, stream, decay_pow, decay);
}

void differences(TensorList<3> tensors, cudaStream_t stream) {
  start_update(tensors, DifferenceBody{}, stream);
}

void take_means(TensorList<3> tensors, float share, cudaStream_t stream) {
  start_update(tensors, TakeMeanBody{{}, share}, stream);
}

}  // namespace fleetrun::cuda
