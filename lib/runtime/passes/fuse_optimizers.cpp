// All updates that differ only in their parameters become one op.
//
//   sgd param=a grad=a@GRAD learning_rate=rate -> param=a
//   sgd param=b grad=b@GRAD learning_rate=rate -> param=b
//     =>
//   sgd param=a,b grad=a@GRAD,b@GRAD learning_rate=rate -> param=a,b
//
// The op waits for all gradients. Tells how many there were, in the words that PaddlePaddle logs
// (ir/fuse_optimizer_ops_pass/fuse_optimizer_op_pass.cc).
#include <algorithm>

#include <fmt/format.h>

#include "runtime/passes/passes.h"
#include "runtime/passes/shared/join_lists.h"

namespace fleetrun::runtime {
namespace {

// Not what makes gradients ready for them.
bool updates_parameters(const Program& program, const Op& op) {
  return op.role == Role::optimize && program.value(op.outputs.front()).kind == ValueKind::parameter;
}

bool reads_parameters(const Program& program, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
    return id != kNone && program.value(id).kind == ValueKind::parameter;
  });
}

}  // namespace

void fuse_optimizers(Program& program, const PassContext& context) {
  std::vector<std::vector<OpView>> groups;
  std::vector<Op> ops, later;  // later: what reads updated parameters
  for (const Op& op : program.ops) {
    if (!updates_parameters(program, op)) {
      (!groups.empty() && reads_parameters(program, op) ? later : ops).push_back(op);
      continue;
    }
    const OpView view(find_op(context.ops, op.type), program, op);
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& others) {
      return differ_in_lists_alone(others.front(), view);
    });
    if (group != groups.end())
      group->push_back(view);
    else
      groups.push_back({view});
  }
  for (const auto& group : groups) {
    ops.push_back(join_lists(group));
    context.tell(fmt::format(
        "Find {} operators : {}, and {} for dense gradients. To make the speed faster, those optimization are fused during training.",
        group.front().op().type, group.size(), group.size()));
  }
  ops.insert(ops.end(), later.begin(), later.end());
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
