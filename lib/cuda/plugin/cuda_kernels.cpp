#include "cuda/plugin/cuda_device.h"
#include "runtime/kernels/all_reduce.h"
#include "runtime/kernels/rooted_collectives.h"

// One line per op; their files are under kernels/.
#define FLEETRUN_CUDA_KERNELS(X) \
  X(accuracy)                    \
  X(adam)                        \
  X(batch_norm)                  \
  X(batch_norm_grad)             \
  X(cast)                        \
  X(concat)                      \
  X(concat_grad)                 \
  X(conv2d)                      \
  X(conv2d_grad_input)           \
  X(conv2d_grad_weights)         \
  X(dropout)                     \
  X(dropout_grad)                \
  X(elementwise_add)             \
  X(fc)                          \
  X(fc_grad_input)               \
  X(fc_grad_weights)             \
  X(fill)                        \
  X(mean)                        \
  X(mean_grad)                   \
  X(momentum)                    \
  X(pool2d)                      \
  X(pool2d_grad)                 \
  X(relu)                        \
  X(relu6)                       \
  X(relu6_grad)                  \
  X(relu_grad)                   \
  X(reorder)                     \
  X(scale)                       \
  X(sgd)                         \
  X(softmax_with_cross_entropy)  \
  X(softmax_with_cross_entropy_grad)

namespace fleetrun::cuda {

#define FLEETRUN_DECLARE(op) runtime::KernelDef op##_kernel();
FLEETRUN_CUDA_KERNELS(FLEETRUN_DECLARE)

runtime::KernelTable cuda_kernels() {
#define FLEETRUN_ENTRY(op) {#op, op##_kernel()},
  return {FLEETRUN_CUDA_KERNELS(FLEETRUN_ENTRY){"all_reduce", runtime::all_reduce_kernel()},
          {"broadcast", runtime::broadcast_kernel()},
          {"reduce", runtime::reduce_kernel()}};
}

}  // namespace fleetrun::cuda
