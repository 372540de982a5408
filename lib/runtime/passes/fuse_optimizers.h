#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// All updates that differ in nothing but their parameters become one op.
//
//   sgd param=a grad=a@GRAD learning_rate=rate -> param=a
//   sgd param=b grad=b@GRAD learning_rate=rate -> param=b
//     =>
//   sgd param=a,b grad=a@GRAD,b@GRAD learning_rate=rate -> param=a,b
//
// It waits for all gradients. Tells how many there were, in the words that PaddlePaddle logs
// (ir/fuse_optimizer_ops_pass/fuse_optimizer_op_pass.cc).
void fuse_optimizers(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
