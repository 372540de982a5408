#include "base/vector_clones.h"
#include "runtime/kernels/cpu/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_CLONES void add_range(const float* x, const float* y, float* sum, std::int64_t begin,
                                      std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) sum[i] = x[i] + y[i];
}

std::unique_ptr<Kernel> make_add(const OpView& op, Device&) {
  return simple_kernel([x = op.input_id("x"), y = op.input_id("y"), sum = op.output_id("sum"),
                        count = elements_of(op, op.input("x"))](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      add_range(at(context, x), at(context, y), at(context, sum), begin, end);
    });
  });
}

}  // namespace

KernelDef elementwise_add_kernel() { return {.choose_layouts = like_the_blocked, .make = make_add}; }

}  // namespace fleetrun::runtime::cpu
