// With strategy.gradient_merge, the ranks sum gradients and update parameters in every k_steps-th step only. Sums inside the forward and
// the backward part (sync_batch_norm) stay in every step.
//
//   all_reduce x=w@GRAD {op="sum"} communication         all_reduce x=w@GRAD {every=4; op="sum"} communication
//   sgd param=w grad=w@GRAD {} optimize             =>   sgd param=w grad=w@GRAD {every=4} optimize
#include <set>

#include <fmt/format.h>

#include "runtime/graph/every_of.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {

void update_every_k_steps(Program& program, const PassContext& context) {
  const int steps = context.strategy.gradient_merge_configs.k_steps;
  std::set<ValueId> of_updates;  // activations that ops of the optimizer make
  for (Op& op : program.ops) {
    const ValueId first = op.inputs.empty() ? kNone : op.inputs.front();
    const bool sums_for_updates =
        op.role == Role::communication &&
        (program.value(first).kind != ValueKind::activation || of_updates.count(first) > 0);
    if (op.role != Role::optimize && !sums_for_updates) continue;
    set_every(op, steps);
    of_updates.insert(op.outputs.begin(), op.outputs.end());
  }
  context.tell(
      fmt::format("gradient_merge: the ranks sum gradients and update parameters once in {} steps", steps));
}

}  // namespace fleetrun::runtime
