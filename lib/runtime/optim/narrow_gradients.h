// strategy.fp16_allreduce: gradients travel between the ranks in a narrow type, and are f32 before and after that.
//
//   fc_grad ... -> w@GRAD        fc_grad ... -> w@GRAD;  cast_gradient grad=w@GRAD param=w -> w@GRAD.bf16
//   sgd grad=w@GRAD         =>   cast x=w@GRAD.bf16 -> w@GRAD.summed;  sgd grad=w@GRAD.summed
#pragma once
#include <vector>

#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// After the backward part. Returns what optimizers read: the gradients after the sum, in f32 again.
std::vector<ValueId> narrow_gradients(Builder& builder, DType narrow);

}  // namespace fleetrun::runtime
