#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// A batch norm and the relu that alone reads it become one op, which looks at the image once less; so do their gradients.
//
//   batch_norm x -> b m v                         batch_norm_act x -> y m v
//   relu x=b -> y                           =>
//   relu_grad y dy -> b@GRAD                      batch_norm_act_grad x dy m v -> x@GRAD
//   batch_norm_grad x dy=b@GRAD m v -> x@GRAD
// Bits stay as they are.
void fuse_bn_act(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
