// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2) as PaddlePaddle has it (paddle/fluid/operators/optimizers/
// lamb_op.h), in place. Each parameter moves by a share of its own norm.
//   moment1, moment2 as adam.cpp, without its L2 decay
//   d = moment1 / (1 - beta1_pow) / (sqrt(moment2 / (1 - beta2_pow)) + epsilon) + weight_decay * param
//   r = |param| / |d|, but 1 where one of the two norms is 0
//   param -= learning_rate * r * d
//   beta1_pow *= beta1;  beta2_pow *= beta2
// Arguments, attributes and errors are those of adam.
#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {

OpDef lamb() { return update_by_moments(); }

}  // namespace fleetrun::runtime::ops
