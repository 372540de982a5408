#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Update {
  float* param;
  const float* grad;
  float rate, decay;
};

FLEETRUN_VECTOR_LOOP void update_range(const Update& with, std::int64_t begin, std::int64_t end) {
  float* __restrict const param = with.param;
  const float* __restrict const grad = with.grad;
  const float rate = with.rate, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) param[i] -= rate * (grad[i] + decay * param[i]);
}

std::unique_ptr<Kernel> make_sgd(const OpView& op, Device&) {
  return simple_kernel([pieces = UpdatePieces<2>(op, {"param", "grad"}), rate = op.input_id("learning_rate"),
                        decay = static_cast<float>(op.number("weight_decay"))](const RunContext& context) {
    pieces.parallel(context, [&](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      const auto [param, grad] = data;
      vector_clones<update_range>({param, grad, *at(context, rate), decay}, begin, end);
    });
  });
}

}  // namespace

KernelDef sgd_kernel() { return {.choose_layouts = as_they_lie, .make = make_sgd}; }

}  // namespace fleetrun::runtime::cpu
