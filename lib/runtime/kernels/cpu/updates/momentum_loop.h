// What momentum, LARS and DGC share.
#pragma once
#include <cstdint>
#include <memory>

#include "base/number/vector_clones.h"
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime::cpu {

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device&);

// v = mu * v + velocity_rate * (g + decay * w); w -= param_rate * v. Momentum has the learning rate in `param_rate`, LARS in `velocity_rate`.
struct MomentumUpdate {
  float* param;
  const float* grad;
  float* velocity;
  float velocity_rate, param_rate, mu, decay;
};

FLEETRUN_VECTOR_LOOP void momentum_range(const MomentumUpdate& with, std::int64_t begin, std::int64_t end) {
  float* __restrict const param = with.param;
  const float* __restrict const grad = with.grad;
  float* __restrict const velocity = with.velocity;
  const float velocity_rate = with.velocity_rate, param_rate = with.param_rate, mu = with.mu,
              decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float v = mu * velocity[i] + velocity_rate * (grad[i] + decay * param[i]);
    velocity[i] = v;
    param[i] -= param_rate * v;
  }
}

}  // namespace fleetrun::runtime::cpu
