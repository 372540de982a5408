#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void scale_all(const float* x, float* y, float scale, float bias, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = scale_of(x[i], scale, bias);
}

std::unique_ptr<Kernel> make_scale(const OpView& op, Device&) {
  return elementwise_kernel(
      op, std::array{op.input_id("x")}, op.output_id("y"),
      [scale = static_cast<float>(op.number("scale")), bias = static_cast<float>(op.number("bias"))](
          const auto& in, float* y, std::int64_t count) {
        vector_clones<scale_all>(in[0], y, scale, bias, count);
      });
}

LayoutChoice choose_scale(const LayoutQuery& query, Device&) {
  const LayoutChoice choice = like_input(query, "x");
  return query.op.number("bias") != 0.0 ? unless_padded(query, choice) : choice;
}

}  // namespace

KernelDef scale_kernel() { return {.choose_layouts = choose_scale, .make = make_scale}; }

}  // namespace fleetrun::runtime::cpu
