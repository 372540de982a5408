#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_scale_loss(const OpView& op, Device&) {
  return simple_kernel(
      [x = op.input_id("x"), scale = op.input_id("scale"), y = op.output_id("y")](const RunContext& context) {
        *at(context, y) = *at(context, x) * *at(context, scale);
      });
}

}  // namespace

KernelDef scale_loss_kernel() { return {.make = make_scale_loss}; }

}  // namespace fleetrun::runtime::cpu
