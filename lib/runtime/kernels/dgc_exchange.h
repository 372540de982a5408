// The dgc_exchange op on any device: it calls the communicator.
#pragma once
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

KernelDef dgc_exchange_kernel();

}  // namespace fleetrun::runtime
