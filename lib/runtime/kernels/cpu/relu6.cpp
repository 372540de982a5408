#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"
#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_relu6(const OpView& op, Device&) {
  return elementwise_kernel<relu6_of>(op, ops::relu6_threshold(op));
}

std::unique_ptr<Kernel> make_relu6_grad(const OpView& op, Device&) {
  return elementwise_kernel<relu6_grad_of>(op, ops::relu6_threshold(op));
}

}  // namespace

KernelDef relu6_kernel() { return {.choose_layouts = like_first_input, .make = make_relu6}; }
KernelDef relu6_grad_kernel() { return {.choose_layouts = like_first_input, .make = make_relu6_grad}; }

}  // namespace fleetrun::runtime::cpu
