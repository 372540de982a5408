#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/cpu/vector_clones.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Settings {
  float mu;
  float decay;
};

FLEETRUN_VECTOR_CLONES void plain_range(float* param, const float* grad, float* velocity, float rate,
                                        const Settings& set, std::int64_t begin, std::int64_t end) {
  const float mu = set.mu, decay = set.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float v = mu * velocity[i] + (grad[i] + decay * param[i]);
    velocity[i] = v;
    param[i] -= rate * v;
  }
}

FLEETRUN_VECTOR_CLONES void nesterov_range(float* param, const float* grad, float* velocity, float rate,
                                           const Settings& set, std::int64_t begin, std::int64_t end) {
  const float mu = set.mu, decay = set.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = grad[i] + decay * param[i];
    const float v = mu * velocity[i] + g;
    velocity[i] = v;
    param[i] -= rate * (g + mu * v);
  }
}

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device&) {
  const auto range = op.flag("use_nesterov") ? nesterov_range : plain_range;
  const Settings settings = {.mu = static_cast<float>(op.number("mu")),
                             .decay = static_cast<float>(op.number("weight_decay"))};
  return simple_kernel([range, settings, param = op.input_id("param"), grad = op.input_id("grad"),
                        velocity = op.input_id("velocity"), rate = op.input_id("learning_rate"),
                        count = elements_of(op, op.input("param"))](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      range(at(context, param), at(context, grad), at(context, velocity), *at(context, rate), settings, begin,
            end);
    });
  });
}

LayoutChoice like_param(const LayoutQuery& query, Device&) { return like_input(query, "param"); }

}  // namespace

KernelDef momentum_kernel() { return {.choose_layouts = like_param, .make = make_momentum}; }

}  // namespace fleetrun::runtime::cpu
