#include <cmath>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
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
  float decay;    // of Adam: the part of a weight that is added to its gradient
  float keep;     // of AdamW: what is left of a weight before the update, 1 - learning_rate * weight_decay
};

enum class Decay { in_gradient, of_weights };

Step step_of(const Settings& set, Decay decay, float learning_rate, float beta1_pow, float beta2_pow) {
  const double correction = std::sqrt(1.0 - static_cast<double>(beta2_pow));
  return {.rate = static_cast<float>(static_cast<double>(learning_rate) * correction /
                                     (1.0 - static_cast<double>(beta1_pow))),
          .epsilon = static_cast<float>(set.epsilon * correction),
          .decay = decay == Decay::in_gradient ? set.decay : 0.0F,
          .keep = decay == Decay::in_gradient ? 1.0F
                                              : static_cast<float>(1.0 - static_cast<double>(learning_rate) *
                                                                             static_cast<double>(set.decay))};
}

struct Pointers {
  float* param;
  const float* grad;
  float *moment1, *moment2;
};

FLEETRUN_VECTOR_LOOP void adam_range(const Pointers& p, const Settings& set, const Step& step,
                                     std::int64_t begin, std::int64_t end) {
  float* const param = p.param;
  const float* const grad = p.grad;
  float* const moment1 = p.moment1;
  float* const moment2 = p.moment2;
  const Settings s = set;
  const Step now = step;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = grad[i] + now.decay * param[i];
    const float m1 = s.beta1 * moment1[i] + s.rest1 * g;
    const float m2 = s.beta2 * moment2[i] + s.rest2 * g * g;
    moment1[i] = m1;
    moment2[i] = m2;
    param[i] = now.keep * param[i] - now.rate * (m1 / (std::sqrt(m2) + now.epsilon));
  }
}

template <Decay decay>
std::unique_ptr<Kernel> make_adam(const OpView& op, Device&) {
  const double beta1 = op.number("beta1"), beta2 = op.number("beta2");
  const Settings settings = {.beta1 = static_cast<float>(beta1),
                             .beta2 = static_cast<float>(beta2),
                             .rest1 = static_cast<float>(1.0 - beta1),
                             .rest2 = static_cast<float>(1.0 - beta2),
                             .epsilon = op.number("epsilon"),
                             .decay = static_cast<float>(op.number("weight_decay"))};
  const auto powers = [&](std::string_view name) {
    const auto ids = op.input_ids(name);
    return std::vector<ValueId>(ids.begin(), ids.end());
  };
  return simple_kernel([settings, pieces = UpdatePieces<4>(op, {"param", "grad", "moment1", "moment2"}),
                        pow1 = powers("beta1_pow"), pow2 = powers("beta2_pow"),
                        rate = op.input_id("learning_rate")](const RunContext& context) {
    pieces.parallel(context, [&](std::size_t i, const auto& data, std::int64_t begin, std::int64_t end) {
      const auto [param, grad, moment1, moment2] = data;
      const Step step =
          step_of(settings, decay, *at(context, rate), *at(context, pow1[i]), *at(context, pow2[i]));
      vector_clones<adam_range>({param, grad, moment1, moment2}, settings, step, begin, end);
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      *at(context, pow1[i]) *= settings.beta1;
      *at(context, pow2[i]) *= settings.beta2;
    }
  });
}

}  // namespace

KernelDef adam_kernel() { return {.choose_layouts = as_they_lie, .make = make_adam<Decay::in_gradient>}; }
KernelDef adamw_kernel() { return {.choose_layouts = as_they_lie, .make = make_adam<Decay::of_weights>}; }

}  // namespace fleetrun::runtime::cpu
