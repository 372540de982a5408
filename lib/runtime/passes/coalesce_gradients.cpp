// Places the gradients of one message one after the other in memory (gradient_groups.h has the rules).
//
//   gradient a@GRAD f32[9] of a           gradient a@GRAD f32[9] of a
//   gradient b@GRAD f32[5] of b      =>   gradient b@GRAD f32[5] of b
//                                         contiguous b@GRAD,a@GRAD
// (b's gradient is made first.)
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/gradient_groups.h"

namespace fleetrun::runtime {

void coalesce_gradients(Program& program, const PassContext& context) {
  const job::StrategySpec& strategy = context.strategy;
  const GroupLimits limits = {.megabytes = strategy.fuse_grad_size_in_MB.value_or(job::kFusedMegabytes),
                              .gradients = strategy.fuse_grad_size_in_TFLOPS.value_or(job::kFusedGradients),
                              .last_megabytes = strategy.last_comm_group_size_MB};
  for (auto& group : gradient_groups(program, context.ops, limits))
    program.contiguous.push_back(std::move(group));
}

}  // namespace fleetrun::runtime
