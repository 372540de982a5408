#include <cmath>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Settings {
  float beta1, beta2;
  float rest1, rest2;  // 1 - beta1, 1 - beta2
  double epsilon;
  float decay;
};

// The factors of one step, the same for every element.
struct Step {
  float rate;     // learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)
  float epsilon;  // epsilon * sqrt(1 - beta2^t)
};

Step step_of(const Settings& set, float learning_rate, float beta1_pow, float beta2_pow) {
  const double correction = std::sqrt(1.0 - static_cast<double>(beta2_pow));
  return {.rate = static_cast<float>(static_cast<double>(learning_rate) * correction /
                                     (1.0 - static_cast<double>(beta1_pow))),
          .epsilon = static_cast<float>(set.epsilon * correction)};
}

struct Pointers {
  float* param;
  const float* grad;
  float *moment1, *moment2;
};

FLEETRUN_VECTOR_CLONES void adam_range(const Pointers& p, const Settings& set, const Step& step,
                                       std::int64_t begin, std::int64_t end) {
  float* const param = p.param;
  const float* const grad = p.grad;
  float* const moment1 = p.moment1;
  float* const moment2 = p.moment2;
  const Settings s = set;
  const Step now = step;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = grad[i] + s.decay * param[i];
    const float m1 = s.beta1 * moment1[i] + s.rest1 * g;
    const float m2 = s.beta2 * moment2[i] + s.rest2 * g * g;
    moment1[i] = m1;
    moment2[i] = m2;
    param[i] -= now.rate * (m1 / (std::sqrt(m2) + now.epsilon));
  }
}

std::unique_ptr<Kernel> make_adam(const OpView& op, Device&) {
  const double beta1 = op.number("beta1"), beta2 = op.number("beta2");
  const Settings settings = {.beta1 = static_cast<float>(beta1),
                             .beta2 = static_cast<float>(beta2),
                             .rest1 = static_cast<float>(1.0 - beta1),
                             .rest2 = static_cast<float>(1.0 - beta2),
                             .epsilon = op.number("epsilon"),
                             .decay = static_cast<float>(op.number("weight_decay"))};
  return simple_kernel([settings, param = op.input_id("param"), grad = op.input_id("grad"),
                        moment1 = op.input_id("moment1"), moment2 = op.input_id("moment2"),
                        pow1 = op.input_id("beta1_pow"), pow2 = op.input_id("beta2_pow"),
                        rate = op.input_id("learning_rate"),
                        count = elements_of(op, op.input("param"))](const RunContext& context) {
    const Pointers pointers = {at(context, param), at(context, grad), at(context, moment1),
                               at(context, moment2)};
    const Step step = step_of(settings, *at(context, rate), *at(context, pow1), *at(context, pow2));
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      adam_range(pointers, settings, step, begin, end);
    });
    *at(context, pow1) *= settings.beta1;
    *at(context, pow2) *= settings.beta2;
  });
}

LayoutChoice like_param(const LayoutQuery& query, Device&) { return like_input(query, "param"); }

}  // namespace

KernelDef adam_kernel() { return {.choose_layouts = like_param, .make = make_adam}; }

}  // namespace fleetrun::runtime::cpu
