#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void add_all(const float* x, const float* y, float* sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
}

std::unique_ptr<Kernel> make_add(const OpView& op, Device&) {
  return elementwise_kernel(op, std::array{op.input_id("x"), op.input_id("y")}, op.output_id("sum"),
                            [](const auto& in, float* sum, std::int64_t count) {
                              vector_clones<add_all>(in[0], in[1], sum, count);
                            });
}

}  // namespace

KernelDef elementwise_add_kernel() { return {.choose_layouts = like_the_blocked, .make = make_add}; }

}  // namespace fleetrun::runtime::cpu
