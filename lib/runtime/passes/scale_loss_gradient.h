#pragma once
#include "runtime/passes/pass_context.h"

namespace fleetrun::runtime {

// Sums over ranks become means: the gradient of the loss starts as 1/ranks (gradient_scale_strategy CoeffNumDevice).
//
//   fill -> loss@GRAD {value=1}      =>      fill -> loss@GRAD {value=1/ranks}
void scale_loss_gradient(Program& program, const PassContext& context);

}  // namespace fleetrun::runtime
