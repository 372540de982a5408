// The ops send and recv on any device: their communicator knows the device's memory.
#pragma once
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

KernelDef send_kernel();
KernelDef recv_kernel();

}  // namespace fleetrun::runtime
