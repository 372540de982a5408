#include "base/vector_clones.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_CLONES void scale_range(const float* x, float* y, float scale, float bias, std::int64_t begin,
                                        std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = scale * x[i] + bias;
}

std::unique_ptr<Kernel> make_scale(const OpView& op, Device&) {
  return simple_kernel([x = op.input_id("x"), y = op.output_id("y"),
                        scale = static_cast<float>(op.number("scale")),
                        bias = static_cast<float>(op.number("bias")),
                        count = elements_of(op, op.input("x"))](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      scale_range(at(context, x), at(context, y), scale, bias, begin, end);
    });
  });
}

LayoutChoice choose_scale(const LayoutQuery& query, Device&) {
  const LayoutChoice choice = like_input(query, "x");
  return query.op.number("bias") != 0.0 ? unless_padded(query, choice) : choice;
}

}  // namespace

KernelDef scale_kernel() { return {.choose_layouts = choose_scale, .make = make_scale}; }

}  // namespace fleetrun::runtime::cpu
