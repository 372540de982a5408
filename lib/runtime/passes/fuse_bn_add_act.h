#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// A batch norm, the addition that alone reads it and the relu that alone reads that become one op; so do their gradients.
// Where both sides of an addition are batch norms, the first is taken.
//
//   batch_norm x -> b m v                        batch_norm_add_act x z -> y m v
//   elementwise_add x=b y=z -> s
//   relu x=s -> y                          =>
//   relu_grad y dy -> s@GRAD                     batch_norm_add_act_grad x y dy m v -> x@GRAD dz=s@GRAD
//   batch_norm_grad x dy=s@GRAD m v -> x@GRAD
// s@GRAD is the gradient of z, too, which others go on to read. Where dy is the sum of the gradients of two branches, which
// nobody else reads, the op takes both (dy, dy_too) in place of the addition. Bits stay as they are.
void fuse_bn_add_act(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
