#include "runtime/kernels/all_reduce.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/kernels/dgc_exchange.h"
#include "runtime/kernels/point_to_point.h"
#include "runtime/kernels/rooted_collectives.h"

namespace fleetrun::runtime::cpu {

#define EVERYWHERE(op) KernelDef op##_kernel();
#define ON_CPU(op) KernelDef op##_kernel();
#define COLLECTIVE(op)
#include "runtime/ops/ops.def"

KernelTable cpu_kernels() {
  return {
#define EVERYWHERE(op) {#op, op##_kernel()},
#define ON_CPU(op) {#op, op##_kernel()},
#define COLLECTIVE(op) {#op, runtime::op##_kernel()},
#include "runtime/ops/ops.def"
  };
}

}  // namespace fleetrun::runtime::cpu
