#include "base/vector_clones.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Update {
  float* param;
  const float* grad;
  float* velocity;
  float rate, mu, decay;
};

FLEETRUN_VECTOR_CLONES void plain_range(const Update& with, std::int64_t begin, std::int64_t end) {
  float* __restrict const param = with.param;
  const float* __restrict const grad = with.grad;
  float* __restrict const velocity = with.velocity;
  const float rate = with.rate, mu = with.mu, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float v = mu * velocity[i] + (grad[i] + decay * param[i]);
    velocity[i] = v;
    param[i] -= rate * v;
  }
}

FLEETRUN_VECTOR_CLONES void nesterov_range(const Update& with, std::int64_t begin, std::int64_t end) {
  float* __restrict const param = with.param;
  const float* __restrict const grad = with.grad;
  float* __restrict const velocity = with.velocity;
  const float rate = with.rate, mu = with.mu, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = grad[i] + decay * param[i];
    const float v = mu * velocity[i] + g;
    velocity[i] = v;
    param[i] -= rate * (g + mu * v);
  }
}

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device&) {
  const auto range = op.flag("use_nesterov") ? nesterov_range : plain_range;
  return simple_kernel([range, param = op.input_id("param"), grad = op.input_id("grad"),
                        velocity = op.input_id("velocity"), rate = op.input_id("learning_rate"),
                        mu = static_cast<float>(op.number("mu")),
                        decay = static_cast<float>(op.number("weight_decay")),
                        count = elements_of(op, op.input("param"))](const RunContext& context) {
    const Update with = {
        at(context, param), at(context, grad), at(context, velocity), *at(context, rate), mu, decay};
    parallel_for(count, kElementsPerThread,
                 [&](std::int64_t begin, std::int64_t end) { range(with, begin, end); });
  });
}

LayoutChoice like_param(const LayoutQuery& query, Device&) { return like_input(query, "param"); }

}  // namespace

KernelDef momentum_kernel() { return {.choose_layouts = like_param, .make = make_momentum}; }

}  // namespace fleetrun::runtime::cpu
