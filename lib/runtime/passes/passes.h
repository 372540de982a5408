// The passes of the strategy, in alphabetical order. compile/pipeline.cpp lists them in the order in which they run.
// The head of passes/NAME.cpp shows a program before and after the pass.
#pragma once
#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime {

void assign_communicators(Program&, const PassContext&);
void auto_fusion(Program&, const PassContext&);
void average_parameters(Program&, const PassContext&);
void backward_optimizer_deps(Program&, const PassContext&);
void coalesce_gradients(Program&, const PassContext&);
void cut_forward(Program&, const PassContext&);
void divide_averages(Program&, const PassContext&);
void fuse_all_reduce(Program&, const PassContext&);
void fuse_bn_act(Program&, const PassContext&);
void fuse_bn_add_act(Program&, const PassContext&);
void fuse_broadcasts(Program&, const PassContext&);
void fuse_elewise_add_act(Program&, const PassContext&);
void fuse_optimizers(Program&, const PassContext&);
void fuse_relu_depthwise_conv(Program&, const PassContext&);
void insert_all_reduce(Program&, const PassContext&);
void insert_reduce(Program&, const PassContext&);
void order_all_reduces(Program&, const PassContext&);
void recompute(Program&, const PassContext&);
void scale_loss_gradient(Program&, const PassContext&);
void sequential_execution(Program&, const PassContext&);
void sparse_gradients(Program&, const PassContext&);
void sync_batch_norm(Program&, const PassContext&);
void update_every_k_steps(Program&, const PassContext&);

}  // namespace fleetrun::runtime
