// Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101), as PyTorch's AdamW has it, in place.
//   param -= learning_rate * weight_decay * param
//   then as adam.cpp without its L2 decay
// Arguments, attributes and errors are those of adam.
#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {

OpDef adamw() { return update_by_moments(); }

}  // namespace fleetrun::runtime::ops
