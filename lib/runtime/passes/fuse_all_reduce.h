#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Gradients that lie one after the other travel as one message, once the last of them is made.
//
//   contiguous b@GRAD,a@GRAD                     contiguous b@GRAD,a@GRAD
//   fc_grad ... -> b@GRAD                        fc_grad ... -> b@GRAD
//   all_reduce x=b@GRAD -> x=b@GRAD         =>   fc_grad ... -> a@GRAD
//   fc_grad ... -> a@GRAD                        all_reduce x=b@GRAD,a@GRAD -> x=b@GRAD,a@GRAD
//   all_reduce x=a@GRAD -> x=a@GRAD
//
// Tells how many there were and are, in the words that PaddlePaddle logs
// (ir/multi_devices_graph_pass/fuse_all_reduce_op_pass.cc).
void fuse_all_reduce(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
