#include "runtime/kernels/all_reduce.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/kernels/rooted_collectives.h"

// One line per op; each kernel is in the file of its op's name.
#define FLEETRUN_CPU_KERNELS(X)      \
  X(accuracy)                        \
  X(adam)                            \
  X(batch_norm)                      \
  X(batch_norm_act)                  \
  X(batch_norm_act_grad)             \
  X(batch_norm_add_act)              \
  X(batch_norm_add_act_grad)         \
  X(batch_norm_grad)                 \
  X(cast)                            \
  X(check_finite_and_unscale)        \
  X(concat)                          \
  X(concat_grad)                     \
  X(conv2d)                          \
  X(conv2d_grad_input)               \
  X(conv2d_grad_weights)             \
  X(dropout)                         \
  X(dropout_grad)                    \
  X(elementwise_add)                 \
  X(elementwise_add_act)             \
  X(elementwise_add_act_grad)        \
  X(elementwise_group)               \
  X(fc)                              \
  X(fc_grad_input)                   \
  X(fc_grad_weights)                 \
  X(fill)                            \
  X(mean)                            \
  X(mean_grad)                       \
  X(momentum)                        \
  X(pool2d)                          \
  X(pool2d_grad)                     \
  X(relu)                            \
  X(relu6)                           \
  X(relu6_grad)                      \
  X(relu_depthwise)                  \
  X(relu_depthwise_grad_input)       \
  X(relu_depthwise_grad_weights)     \
  X(relu_grad)                       \
  X(reorder)                         \
  X(scale)                           \
  X(scale_loss)                      \
  X(sgd)                             \
  X(softmax_with_cross_entropy)      \
  X(softmax_with_cross_entropy_grad) \
  X(sync_batch_norm)                 \
  X(sync_batch_norm_grad)            \
  X(sync_batch_norm_grad_sums)       \
  X(sync_batch_norm_sums)            \
  X(update_loss_scaling)             \
  X(zero_on_overflow)

namespace fleetrun::runtime::cpu {

#define FLEETRUN_DECLARE(op) KernelDef op##_kernel();
FLEETRUN_CPU_KERNELS(FLEETRUN_DECLARE)

KernelTable cpu_kernels() {
#define FLEETRUN_ENTRY(op) {#op, op##_kernel()},
  return {FLEETRUN_CPU_KERNELS(FLEETRUN_ENTRY){"all_reduce", all_reduce_kernel()},
          {"broadcast", broadcast_kernel()},
          {"reduce", reduce_kernel()}};
}

}  // namespace fleetrun::runtime::cpu
