#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void relu_all(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu_of(x[i]);
}

FLEETRUN_VECTOR_LOOP void relu_grad_all(const float* y, const float* dy, float* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = relu_grad_of(y[i], dy[i]);
}

std::unique_ptr<Kernel> make_relu(const OpView& op, Device&) {
  return elementwise_kernel(
      op, std::array{op.input_id("x")}, op.output_id("y"),
      [](const auto& in, float* y, std::int64_t count) { vector_clones<relu_all>(in[0], y, count); });
}

std::unique_ptr<Kernel> make_relu_grad(const OpView& op, Device&) {
  return elementwise_kernel(op, std::array{op.input_id("y"), op.input_id("dy")}, op.output_id("dx"),
                            [](const auto& in, float* dx, std::int64_t count) {
                              vector_clones<relu_grad_all>(in[0], in[1], dx, count);
                            });
}

}  // namespace

KernelDef relu_kernel() { return {.choose_layouts = like_x, .make = make_relu}; }
KernelDef relu_grad_kernel() { return {.choose_layouts = like_y, .make = make_relu_grad}; }

}  // namespace fleetrun::runtime::cpu
