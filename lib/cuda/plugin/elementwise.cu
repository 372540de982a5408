// Kernels that look at each element by itself.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {
namespace {

template <typename Body>
__global__ void each_element(Body body, std::int64_t count) {
  FLEETRUN_EACH(i, count) body(i);
}

template <typename Body>
void run(std::int64_t count, cudaStream_t stream, const Body& body) {
  start_elements(each_element<Body>, count, stream, body);
}

template <typename From, typename To>
void cast_elements(const void* x, void* y, std::int64_t count, cudaStream_t stream) {
  const auto* const from = static_cast<const From*>(x);
  auto* const to = static_cast<To*>(y);
  // By way of f32, which holds every value of the others; narrowing rounds to the nearest, ties to even.
  run(count, stream,
      [=] __device__(std::int64_t i) { to[i] = static_cast<To>(static_cast<float>(from[i])); });
}

template <typename From>
void cast_from(const void* x, void* y, Number to, std::int64_t count, cudaStream_t stream) {
  if (to == Number::f16) return cast_elements<From, __half>(x, y, count, stream);
  if (to == Number::bf16) return cast_elements<From, __nv_bfloat16>(x, y, count, stream);
  cast_elements<From, float>(x, y, count, stream);
}

// Philox4x32-10 as in lib/runtime/tensor/philox.cpp.
__device__ void philox(std::uint64_t key, std::uint64_t high, std::uint64_t low, std::uint32_t (&x)[4]) {
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  x[0] = static_cast<std::uint32_t>(low), x[1] = static_cast<std::uint32_t>(low >> 32);
  x[2] = static_cast<std::uint32_t>(high), x[3] = static_cast<std::uint32_t>(high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * x[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * x[2];
    const std::uint32_t next0 = static_cast<std::uint32_t>(product1 >> 32) ^ x[1] ^ key0;
    const std::uint32_t next2 = static_cast<std::uint32_t>(product0 >> 32) ^ x[3] ^ key1;
    x[1] = static_cast<std::uint32_t>(product1), x[3] = static_cast<std::uint32_t>(product0);
    x[0] = next0, x[2] = next2;
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
}

}  // namespace

void fill(float* y, float value, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { y[i] = value; });
}

void fill_from(float* y, const float* value, float divisor, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { y[i] = *value / divisor; });
}

void scale(const float* x, float* y, float factor, float bias, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { y[i] = factor * x[i] + bias; });
}

void scale_from(const float* x, const float* factor, float divisor, float* y, std::int64_t count,
                cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { y[i] = x[i] * (*factor / divisor); });
}

void add(const float* x, const float* y, float* sum, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { sum[i] = x[i] + y[i]; });
}

// NaN stays NaN: every comparison with it is false.
void relu(const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { y[i] = x[i] < 0.0F ? 0.0F : x[i]; });
}

void relu_grad(const float* y, const float* dy, float* dx, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { dx[i] = y[i] > 0.0F ? dy[i] : 0.0F; });
}

void clamp(const float* x, float* y, float highest, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) {
    const float value = x[i];
    y[i] = value < 0.0F ? 0.0F : value > highest ? highest : value;
  });
}

void clamp_grad(const float* y, const float* dy, float* dx, float highest, std::int64_t count,
                cudaStream_t stream) {
  run(count, stream,
      [=] __device__(std::int64_t i) { dx[i] = y[i] > 0.0F && y[i] < highest ? dy[i] : 0.0F; });
}

void cast(const void* x, Number from, void* y, Number to, std::int64_t count, cudaStream_t stream) {
  if (from == Number::f16) return cast_from<__half>(x, y, to, count, stream);
  if (from == Number::bf16) return cast_from<__nv_bfloat16>(x, y, to, count, stream);
  cast_from<float>(x, y, to, count, stream);
}

void dropout(const float* x, float* y, const Drop& drop, std::int64_t count, cudaStream_t stream) {
  run((count + 3) / 4, stream, [=] __device__(std::int64_t block) {
    std::uint32_t words[4];
    philox(drop.seed, drop.high, static_cast<std::uint64_t>(block), words);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = block * 4 + i;
      if (at < count) y[at] = words[i] < drop.below ? 0.0F : x[at] * drop.scale;
    }
  });
}

void join(const float* x, const float* y, float* joined, const Runs& runs, cudaStream_t stream) {
  run(runs.rows * (runs.x + runs.y), stream, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / (runs.x + runs.y), at = i % (runs.x + runs.y);
    joined[i] = at < runs.x ? x[row * runs.x + at] : y[row * runs.y + at - runs.x];
  });
}

void part(const float* joined, float* x, float* y, const Runs& runs, cudaStream_t stream) {
  run(runs.rows * (runs.x + runs.y), stream, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / (runs.x + runs.y), at = i % (runs.x + runs.y);
    float& to = at < runs.x ? x[row * runs.x + at] : y[row * runs.y + at - runs.x];
    to = joined[i];
  });
}

void sgd(float* param, const float* grad, const float* rate, float decay, std::int64_t count,
         cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) { param[i] -= *rate * (grad[i] + decay * param[i]); });
}

void momentum(float* param, float* velocity, const float* grad, const float* rate, const Momentum& settings,
              std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) {
    const float g = grad[i] + settings.decay * param[i];
    const float v = settings.mu * velocity[i] + g;
    velocity[i] = v;
    param[i] -= *rate * (settings.nesterov ? g + settings.mu * v : v);
  });
}

void adam(const AdamArrays& arrays, const Adam& settings, std::int64_t count, cudaStream_t stream) {
  run(count, stream, [=] __device__(std::int64_t i) {
    const float g = arrays.grad[i] + settings.decay * arrays.param[i];
    const float m1 = settings.beta1 * arrays.moment1[i] + (1 - settings.beta1) * g;
    const float m2 = settings.beta2 * arrays.moment2[i] + (1 - settings.beta2) * g * g;
    arrays.moment1[i] = m1;
    arrays.moment2[i] = m2;
    const float s = sqrtf(1 - *arrays.pow2);
    arrays.param[i] -= *arrays.rate * s / (1 - *arrays.pow1) * m1 / (sqrtf(m2) + settings.epsilon * s);
  });
  run(1, stream, [=] __device__(std::int64_t) {
    *arrays.pow1 *= settings.beta1;
    *arrays.pow2 *= settings.beta2;
  });
}

}  // namespace fleetrun::cuda
