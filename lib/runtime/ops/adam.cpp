// Adam (Kingma and Ba 2015, arXiv:1412.6980) as PaddlePaddle has it (paddle/fluid/operators/optimizers/
// adam_op.h), with L2 decay, in place.
//   g = grad + weight_decay * param
//   moment1 = beta1 * moment1 + (1 - beta1) * g
//   moment2 = beta2 * moment2 + (1 - beta2) * g * g
//   s = sqrt(1 - beta2_pow)
//   param -= learning_rate * s / (1 - beta1_pow) * moment1 / (sqrt(moment2) + epsilon * s)
//   beta1_pow *= beta1;  beta2_pow *= beta2
//   param, grad, moment1, moment2 f32 of one shape and layout;  beta1_pow, beta2_pow, learning_rate [1]
//   beta1_pow is beta1^t in step t = 1, 2, ...: it starts as beta1, beta2_pow as beta2
//   attributes: beta1, beta2, epsilon, weight_decay
// One op may update many parameters: all but learning_rate are lists.
// With epsilon times s this is the paper's algorithm 1 with bias-corrected moments (and PyTorch's Adam), not
// the paper's shorter form at the end of section 2, which adds epsilon as it is.
// Throws Error(config) when the shapes differ, beta1 or beta2 is not in [0, 1), or epsilon is not above 0.
#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {

OpDef adam() { return update_by_moments(); }

}  // namespace fleetrun::runtime::ops
