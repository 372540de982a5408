#include "runtime/passes/shared/join_lists.h"

#include <string>

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

}  // namespace

bool differ_in_lists_alone(const OpView& a, const OpView& b) {
  return a.op().type == b.op().type && a.op().role == b.op().role && a.op().attributes == b.op().attributes &&
         shared_inputs(a) == shared_inputs(b);
}

Op join_lists(const std::vector<OpView>& ops) {
  Op op = ops.front().op();
  op.inputs = joined(ops, ops.front().def().inputs, true);
  op.outputs = joined(ops, ops.front().def().outputs, false);
  op.after.clear();
  for (const OpView& one : ops) op.after.insert(op.after.end(), one.op().after.begin(), one.op().after.end());
  return op;
}

}  // namespace fleetrun::runtime
