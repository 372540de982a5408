#include "base/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void relu6_all(const float* x, float* y, float threshold, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float above = x[i] < 0.0F ? 0.0F : x[i];  // NaN stays NaN
    y[i] = above > threshold ? threshold : above;
  }
}

FLEETRUN_VECTOR_LOOP void relu6_grad_all(const float* y, const float* dy, float* dx, float threshold,
                                         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float below = y[i] < threshold ? dy[i] : 0.0F;
    dx[i] = y[i] > 0.0F ? below : 0.0F;
  }
}

std::unique_ptr<Kernel> make_relu6(const OpView& op, Device&) {
  return elementwise_kernel(
      op, std::array{op.input_id("x")}, op.output_id("y"),
      [threshold = static_cast<float>(op.number("threshold"))](const auto& in, float* y, std::int64_t count) {
        vector_clones<relu6_all>(in[0], y, threshold, count);
      });
}

std::unique_ptr<Kernel> make_relu6_grad(const OpView& op, Device&) {
  return elementwise_kernel(op, std::array{op.input_id("y"), op.input_id("dy")}, op.output_id("dx"),
                            [threshold = static_cast<float>(op.number("threshold"))](
                                const auto& in, float* dx, std::int64_t count) {
                              vector_clones<relu6_grad_all>(in[0], in[1], dx, threshold, count);
                            });
}

}  // namespace

KernelDef relu6_kernel() { return {.choose_layouts = like_x, .make = make_relu6}; }
KernelDef relu6_grad_kernel() { return {.choose_layouts = like_y, .make = make_relu6_grad}; }

}  // namespace fleetrun::runtime::cpu
