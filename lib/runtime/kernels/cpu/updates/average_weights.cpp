#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void average_range(const float* param, float* average, float share, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) average[i] += share * (param[i] - average[i]);
}

std::unique_ptr<Kernel> make_average(const OpView& op, Device&) {
  return simple_kernel([pieces = UpdatePieces<2>(op, {"param", "average"}),
                        decay = static_cast<float>(op.number("decay")),
                        pow = op.input_id("decay_pow")](const RunContext& context) {
    const double kept = static_cast<double>(*at(context, pow));
    const auto share = static_cast<float>((1.0 - static_cast<double>(decay)) / (1.0 - kept));
    pieces.parallel(context, [&](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      vector_clones<average_range>(data[0] + begin, data[1] + begin, share, end - begin);
    });
    *at(context, pow) *= decay;
  });
}

}  // namespace

KernelDef average_weights_kernel() { return {.choose_layouts = as_they_lie, .make = make_average}; }

}  // namespace fleetrun::runtime::cpu
