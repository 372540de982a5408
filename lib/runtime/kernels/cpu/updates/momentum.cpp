#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/momentum_loop.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void nesterov_range(const MomentumUpdate& with, std::int64_t begin, std::int64_t end) {
  float* __restrict const param = with.param;
  const float* __restrict const grad = with.grad;
  float* __restrict const velocity = with.velocity;
  const float rate = with.param_rate, mu = with.mu, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = grad[i] + decay * param[i];
    const float v = mu * velocity[i] + g;
    velocity[i] = v;
    param[i] -= rate * (g + mu * v);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device&) {
  const auto range = op.flag("use_nesterov") ? vector_clones<nesterov_range> : vector_clones<momentum_range>;
  return simple_kernel([range, pieces = UpdatePieces<3>(op, {"param", "grad", "velocity"}),
                        rate = op.input_id("learning_rate"), mu = static_cast<float>(op.number("mu")),
                        decay = static_cast<float>(op.number("weight_decay"))](const RunContext& context) {
    pieces.parallel(context, [&](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      const auto [param, grad, velocity] = data;
      range({param, grad, velocity, 1.0F, *at(context, rate), mu, decay}, begin, end);
    });
  });
}

KernelDef momentum_kernel() { return {.choose_layouts = as_they_lie, .make = make_momentum}; }

}  // namespace fleetrun::runtime::cpu
