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

namespace fleetrun::runtime {
namespace {

// What an op has besides its lists.
std::vector<ValueId> shared_inputs(const OpView& op) {
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < op.def().inputs.size(); ++i)
    if (!op.def().inputs[i].ends_with('*'))
      ids.push_back(op.input_id(op.def().input_name(static_cast<int>(i))));
  return ids;
}

// Not what makes gradients ready for them.
bool updates_parameters(const Program& program, const Op& op) {
  return op.role == Role::optimize && program.value(op.outputs.front()).kind == ValueKind::parameter;
}

bool reads_parameters(const Program& program, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
    return id != kNone && program.value(id).kind == ValueKind::parameter;
  });
}

bool fit_together(const OpView& a, const OpView& b) {
  return a.op().type == b.op().type && a.op().attributes == b.op().attributes &&
         shared_inputs(a) == shared_inputs(b);
}

// One argument after the other, its lists joined.
std::vector<ValueId> joined(const std::vector<OpView>& ops, const std::vector<std::string>& arguments,
                            bool inputs) {
  std::vector<ValueId> ids;
  const OpDef& def = ops.front().def();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const int index = static_cast<int>(i);
    const std::string name = inputs ? def.input_name(index) : def.output_name(index);
    const std::size_t members = arguments[i].ends_with('*') ? ops.size() : 1;
    for (std::size_t k = 0; k < members; ++k) {
      const auto values = inputs ? ops[k].input_ids(name) : ops[k].output_ids(name);
      ids.insert(ids.end(), values.begin(), values.end());
    }
  }
  return ids;
}

Op fused(const std::vector<OpView>& ops) {
  Op op = ops.front().op();
  op.inputs = joined(ops, ops.front().def().inputs, true);
  op.outputs = joined(ops, ops.front().def().outputs, false);
  op.after.clear();
  for (const OpView& one : ops) op.after.insert(op.after.end(), one.op().after.begin(), one.op().after.end());
  return op;
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
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& others) { return fit_together(others.front(), view); });
    if (group != groups.end())
      group->push_back(view);
    else
      groups.push_back({view});
  }
  for (const auto& group : groups) {
    ops.push_back(fused(group));
    context.tell(fmt::format(
        "Find {} operators : {}, and {} for dense gradients. To make the speed faster, those optimization are fused during training.",
        group.front().op().type, group.size(), group.size()));
  }
  ops.insert(ops.end(), later.begin(), later.end());
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
