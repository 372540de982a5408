// The all_reduce op on any device: its communicator knows the device's memory.
#pragma once
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

KernelDef all_reduce_kernel();

}  // namespace fleetrun::runtime
