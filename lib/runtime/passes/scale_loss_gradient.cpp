// Sums over ranks become means: the gradient of the loss starts as 1/ranks (gradient_scale_strategy CoeffNumDevice).
//
//   fill -> loss@GRAD {value=1}      =>      fill -> loss@GRAD {value=1/ranks}
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

// The op `fill` that starts the backward part.
bool is_loss_gradient(const Op& op) { return op.type == "fill" && op.role == Role::backward; }

}  // namespace

void scale_loss_gradient(Program& program, const PassContext& context) {
  for (Op& op : program.ops)
    if (is_loss_gradient(op)) op.attributes["value"] = 1.0 / context.world_size;
}

}  // namespace fleetrun::runtime
