#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_scale(const OpView& op, Device&) {
  return elementwise_kernel<scale_of>(op, op.number("scale"), op.number("bias"));
}

LayoutChoice choose_scale(const LayoutQuery& query, Device& device) {
  const LayoutChoice choice = like_first_input(query, device);
  return query.op.number("bias") != 0.0 ? unless_padded(query, choice) : choice;
}

}  // namespace

KernelDef scale_kernel() { return {.choose_layouts = choose_scale, .make = make_scale}; }

}  // namespace fleetrun::runtime::cpu
