#include <cmath>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct LambSettings {
  float beta1, beta2;
  float rest1, rest2;  // 1 - beta1, 1 - beta2
  float epsilon, decay;
};

// The corrections of one step, the same for every element.
struct LambStep {
  float of_moment1, of_moment2;  // 1 / (1 - beta^t)
};

struct LambRule {
  LambSettings settings;
  LambStep step;
};

LambStep lamb_step(float beta1_pow, float beta2_pow) {
  return {.of_moment1 = static_cast<float>(1.0 / (1.0 - static_cast<double>(beta1_pow))),
          .of_moment2 = static_cast<float>(1.0 / (1.0 - static_cast<double>(beta2_pow)))};
}

FLEETRUN_VECTOR_LOOP void moments_range(const float* grad, float* moment1, float* moment2,
                                        const LambSettings& set, std::int64_t count) {
  const LambSettings s = set;
  for (std::int64_t i = 0; i < count; ++i) {
    moment1[i] = s.beta1 * moment1[i] + s.rest1 * grad[i];
    moment2[i] = s.beta2 * moment2[i] + s.rest2 * grad[i] * grad[i];
  }
}

struct LambMoments {
  const float *first, *second;
};

FLEETRUN_VECTOR_LOOP void directions(const float* param, const LambMoments& moments, const LambRule& rule,
                                     float* to, std::int64_t count) {
  const float* const first = moments.first;
  const float* const second = moments.second;
  const LambSettings s = rule.settings;
  const LambStep now = rule.step;
  for (std::int64_t i = 0; i < count; ++i)
    to[i] =
        first[i] * now.of_moment1 / (std::sqrt(second[i] * now.of_moment2) + s.epsilon) + s.decay * param[i];
}

FLEETRUN_VECTOR_LOOP void subtract_range(float* param, const float* direction, float rate,
                                         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) param[i] -= rate * direction[i];
}

// Calls use(begin, direction, count) for stretches of [begin, end) that fit the first cache.
template <typename Use>
void each_direction(const std::array<float*, 4>& data, const LambRule& rule, std::int64_t begin,
                    std::int64_t end, Use&& use) {
  constexpr std::int64_t kStretch = 1024;  // 4 KiB
  alignas(64) float direction[kStretch];
  for (; begin < end; begin += kStretch) {
    const std::int64_t count = std::min(kStretch, end - begin);
    vector_clones<directions>(data[0] + begin, {data[2] + begin, data[3] + begin}, rule, direction, count);
    use(begin, direction, count);
  }
}

class Lamb : public Kernel {
 public:
  explicit Lamb(const OpView& op)
      : pieces_(op, {"param", "grad", "moment1", "moment2"}),
        settings_(settings_of(op)),
        beta1_pow_(ids_of(op, "beta1_pow")),
        beta2_pow_(ids_of(op, "beta2_pow")),
        rate_(op.input_id("learning_rate")) {}

  void run(const RunContext& context) override {
    pieces_.sum(context, [&](std::size_t i, const auto& data, std::int64_t begin, std::int64_t end) {
      vector_clones<moments_range>(data[1] + begin, data[2] + begin, data[3] + begin, settings_, end - begin);
      TwoSums sums = {.first = vector_clones<squares_of>(data[0] + begin, end - begin)};
      each_direction(data, {settings_, step(context, i)}, begin, end,
                     [&](std::int64_t, const float* direction, std::int64_t count) {
                       sums.second += vector_clones<squares_of>(direction, count);
                     });
      return sums;
    });
    pieces_.parallel(context, [&](std::size_t i, const auto& data, std::int64_t begin, std::int64_t end) {
      const float rate = *at(context, rate_) * ratio(pieces_.sums_of(context, i));
      each_direction(data, {settings_, step(context, i)}, begin, end,
                     [&](std::int64_t from, const float* direction, std::int64_t count) {
                       vector_clones<subtract_range>(data[0] + from, direction, rate, count);
                     });
    });
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      *at(context, beta1_pow_[i]) *= settings_.beta1;
      *at(context, beta2_pow_[i]) *= settings_.beta2;
    }
  }

  std::size_t scratch_bytes() const override { return pieces_.scratch_bytes(); }

 private:
  static LambSettings settings_of(const OpView& op) {
    const double beta1 = op.number("beta1"), beta2 = op.number("beta2");
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .rest1 = static_cast<float>(1.0 - beta1),
            .rest2 = static_cast<float>(1.0 - beta2),
            .epsilon = static_cast<float>(op.number("epsilon")),
            .decay = static_cast<float>(op.number("weight_decay"))};
  }

  static std::vector<ValueId> ids_of(const OpView& op, const char* argument) {
    const auto ids = op.input_ids(argument);
    return {ids.begin(), ids.end()};
  }

  // |param| / |direction|
  static float ratio(const TwoSums& squares) {
    if (!(squares.first > 0 && squares.second > 0)) return 1;
    return static_cast<float>(std::sqrt(squares.first) / std::sqrt(squares.second));
  }

  LambStep step(const RunContext& context, std::size_t i) const {
    return lamb_step(*at(context, beta1_pow_[i]), *at(context, beta2_pow_[i]));
  }

  UpdatePieces<4> pieces_;
  LambSettings settings_;
  std::vector<ValueId> beta1_pow_, beta2_pow_;
  ValueId rate_;
};

}  // namespace

KernelDef lamb_kernel() { return {.choose_layouts = as_they_lie, .make = make_kernel<Lamb>}; }

}  // namespace fleetrun::runtime::cpu
