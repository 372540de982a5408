#include "base/vector_clones.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_CLONES void relu6_range(const float* x, float* y, float threshold, std::int64_t begin,
                                        std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float above = x[i] < 0.0F ? 0.0F : x[i];  // NaN stays NaN
    y[i] = above > threshold ? threshold : above;
  }
}

FLEETRUN_VECTOR_CLONES void relu6_grad_range(const float* y, const float* dy, float* dx, float threshold,
                                             std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float below = y[i] < threshold ? dy[i] : 0.0F;
    dx[i] = y[i] > 0.0F ? below : 0.0F;
  }
}

std::unique_ptr<Kernel> make_relu6(const OpView& op, Device&) {
  return simple_kernel([x = op.input_id("x"), y = op.output_id("y"),
                        threshold = static_cast<float>(op.number("threshold")),
                        count = elements_of(op, op.input("x"))](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      relu6_range(at(context, x), at(context, y), threshold, begin, end);
    });
  });
}

std::unique_ptr<Kernel> make_relu6_grad(const OpView& op, Device&) {
  return simple_kernel([y = op.input_id("y"), dy = op.input_id("dy"), dx = op.output_id("dx"),
                        threshold = static_cast<float>(op.number("threshold")),
                        count = elements_of(op, op.input("y"))](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      relu6_grad_range(at(context, y), at(context, dy), at(context, dx), threshold, begin, end);
    });
  });
}

LayoutChoice like_x(const LayoutQuery& query, Device&) { return like_input(query, "x"); }
LayoutChoice like_y(const LayoutQuery& query, Device&) { return like_input(query, "y"); }

}  // namespace

KernelDef relu6_kernel() { return {.choose_layouts = like_x, .make = make_relu6}; }
KernelDef relu6_grad_kernel() { return {.choose_layouts = like_y, .make = make_relu6_grad}; }

}  // namespace fleetrun::runtime::cpu
