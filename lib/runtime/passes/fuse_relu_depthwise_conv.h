#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// A relu that only a depthwise convolution reads is done while that reads it; relu(x) is no longer in memory.
//
//   relu x -> r                                    relu_depthwise x w -> y
//   conv2d x=r w -> y                         =>
//   conv2d_grad_weights x=r dy -> w@GRAD           relu_depthwise_grad_weights x dy -> w@GRAD
//   conv2d_grad_input dy w -> r@GRAD               relu_depthwise_grad_input dy w x -> x@GRAD
//   relu_grad y=r dy=r@GRAD -> x@GRAD
// Sums are made in another order than oneDNN's. Before the fusions that would take the relu.
void fuse_relu_depthwise_conv(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
