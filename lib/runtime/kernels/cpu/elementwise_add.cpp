#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_add(const OpView& op, Device&) { return elementwise_kernel<sum_of>(op); }

}  // namespace

KernelDef elementwise_add_kernel() { return {.choose_layouts = like_the_blocked, .make = make_add}; }

}  // namespace fleetrun::runtime::cpu
