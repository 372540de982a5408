#include <cmath>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/momentum_loop.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct LarsSettings {
  double coeff, decay, epsilon;
  float mu;
};

// The learning rate of one parameter.
float lars_rate(const LarsSettings& settings, float learning_rate, const TwoSums& squares) {
  const double param = std::sqrt(squares.first), grad = std::sqrt(squares.second);
  if (!(settings.decay > 0 && param > 0 && grad > 0)) return learning_rate;
  return static_cast<float>(static_cast<double>(learning_rate) * settings.coeff * param /
                            (grad + settings.decay * param + settings.epsilon));
}

std::unique_ptr<Kernel> make_lars(const OpView& op, Device&) {
  const UpdatePieces<3> pieces(op, {"param", "grad", "velocity"});
  const LarsSettings settings = {.coeff = op.number("lars_coeff"),
                                 .decay = op.number("weight_decay"),
                                 .epsilon = op.number("epsilon"),
                                 .mu = static_cast<float>(op.number("mu"))};
  return scratch_kernel(pieces.scratch_bytes(), [pieces, settings, rate = op.input_id("learning_rate")](
                                                    const RunContext& context) {
    pieces.sum(context, [](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      return TwoSums{vector_clones<squares_of>(data[0] + begin, end - begin),
                     vector_clones<squares_of>(data[1] + begin, end - begin)};
    });
    pieces.parallel(context, [&](std::size_t i, const auto& data, std::int64_t begin, std::int64_t end) {
      const auto [param, grad, velocity] = data;
      const float own = lars_rate(settings, *at(context, rate), pieces.sums_of(context, i));
      vector_clones<momentum_range>(
          {param, grad, velocity, own, 1.0F, settings.mu, static_cast<float>(settings.decay)}, begin, end);
    });
  });
}

}  // namespace

KernelDef lars_kernel() { return {.choose_layouts = as_they_lie, .make = make_lars}; }

}  // namespace fleetrun::runtime::cpu
