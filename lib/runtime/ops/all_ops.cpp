#include "runtime/graph/op_def.h"

// One line per op; each is defined in the file of its name (gradients beside the op they belong to).
#define FLEETRUN_OPS(X)              \
  X(accuracy)                        \
  X(adam)                            \
  X(all_reduce)                      \
  X(batch_norm)                      \
  X(batch_norm_act)                  \
  X(batch_norm_act_grad)             \
  X(batch_norm_add_act)              \
  X(batch_norm_add_act_grad)         \
  X(batch_norm_grad)                 \
  X(broadcast)                       \
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
  X(reduce)                          \
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

namespace fleetrun::runtime {
namespace ops {
#define FLEETRUN_DECLARE(op) OpDef op();
FLEETRUN_OPS(FLEETRUN_DECLARE)
}  // namespace ops

const OpTable& all_ops() {
#define FLEETRUN_ENTRY(op) {#op, ops::op()},
  static const OpTable table = {FLEETRUN_OPS(FLEETRUN_ENTRY)};
  return table;
}

}  // namespace fleetrun::runtime
