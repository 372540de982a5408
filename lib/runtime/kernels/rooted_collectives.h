// The ops reduce and broadcast on any device: their communicator knows the device's memory.
#pragma once
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

KernelDef reduce_kernel();
KernelDef broadcast_kernel();
KernelDef gather_parameter_kernel();

}  // namespace fleetrun::runtime
