#include <algorithm>

#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_fill(const OpView& op, Device&) {
  return simple_kernel([y = op.output_id("y"), value = static_cast<float>(op.number("value")),
                        count = elements_of(op, op.output("y"))](const RunContext& context) {
    std::fill_n(at(context, y), count, value);
  });
}

}  // namespace

KernelDef fill_kernel() { return {.make = make_fill}; }

}  // namespace fleetrun::runtime::cpu
