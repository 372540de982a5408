#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"

namespace fleetrun::runtime::cpu {

KernelDef relu_kernel() { return elementwise<relu_of>(); }
KernelDef relu_grad_kernel() { return elementwise<relu_grad_of>(); }

}  // namespace fleetrun::runtime::cpu
