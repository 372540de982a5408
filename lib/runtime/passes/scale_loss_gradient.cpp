// Sums over ranks become means: the gradient of the loss starts as this rank's share of the step's samples, which is 1/ranks
// when all ranks have the same number (gradient_scale_strategy CoeffNumDevice).
//
//   fill -> loss@GRAD {value=1}      =>      fill -> loss@GRAD {value=share}
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

// The op `fill` that starts the backward part.
bool is_loss_gradient(const Op& op) { return op.type == "fill" && op.role == Role::backward; }

}  // namespace

void scale_loss_gradient(Program& program, const PassContext& context) {
  const double share = context.share_of_step > 0 ? context.share_of_step : 1.0 / context.world_size;
  for (Op& op : program.ops)
    if (is_loss_gradient(op)) op.attributes["value"] = share;
}

}  // namespace fleetrun::runtime
