#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void relu6_all(const float* x, float* y, float threshold, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu6_of(x[i], threshold);
}

FLEETRUN_VECTOR_LOOP void relu6_grad_all(const float* y, const float* dy, float* dx, float threshold,
                                         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = relu6_grad_of(y[i], dy[i], threshold);
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
