#include "cuda/plugin/cuda_device.h"
#include "runtime/kernels/all_reduce.h"
#include "runtime/kernels/dgc_exchange.h"
#include "runtime/kernels/point_to_point.h"
#include "runtime/kernels/rooted_collectives.h"

namespace fleetrun::cuda {

#define EVERYWHERE(op) runtime::KernelDef op##_kernel();
#define ON_CPU(op)
#define COLLECTIVE(op)
#include "runtime/ops/ops.def"

runtime::KernelTable cuda_kernels() {
  return {
#define EVERYWHERE(op) {#op, op##_kernel()},
#define ON_CPU(op)
#define COLLECTIVE(op) {#op, runtime::op##_kernel()},
#include "runtime/ops/ops.def"
  };
}

}  // namespace fleetrun::cuda
