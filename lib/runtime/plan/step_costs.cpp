#include "runtime/plan/step_costs.h"

#include <algorithm>
#include <set>

#include "runtime/exec/schedule.h"
#include "runtime/passes/shared/owners.h"

namespace fleetrun::runtime {
namespace {

std::vector<OpMemory> memory_without_scratch(const Program& program, const OpTable& ops) {
  std::vector<OpMemory> memory(program.ops.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const OpView op(find_op(ops, program.ops[i].type), program, program.ops[i]);
    for (const auto& [output, input] : op.def().may_share)
      memory[i].may_share.emplace_back(op.output_id(output), op.input_id(input));
  }
  return memory;
}

void add_kept(const Value& value, StepCosts& costs) {
  const auto bytes = static_cast<double>(value.bytes());
  if (value.kind == ValueKind::parameter) {
    costs.parameter_bytes += bytes;
    costs.largest_parameter_bytes = std::max(costs.largest_parameter_bytes, bytes);
  }
  if (value.kind == ValueKind::gradient) costs.gradient_bytes += bytes;
  if (value.kind == ValueKind::feed) costs.batch_bytes += bytes;
  if (value.kind == ValueKind::state)
    (value.of == kNone ? costs.buffer_bytes : costs.optimizer_bytes) += bytes;
}

double bytes_of(const Program& program, const std::vector<ValueId>& ids) {
  double bytes = 0;
  for (const ValueId id : ids)
    if (id != kNone) bytes += static_cast<double>(program.value(id).bytes());
  return bytes;
}

// Each weight of a convolution or a matrix product meets every element of the output of its channel once.
double flops_of(const OpView& op) {
  const bool multiplies = std::ranges::count(op.def().inputs, "w") == 1;
  if (!multiplies) return 0;
  const Shape &w = op.input("w").shape, &y = op.output("y").shape;
  return 2.0 * static_cast<double>(count_of(w)) * static_cast<double>(count_of(y)) /
         static_cast<double>(y[1]);
}

bool is_forward(const Op& op) { return op.role == Role::forward; }

// By ValueId: the last forward op that reads it; -1: none.
std::vector<int> last_forward_readers(const Program& program) {
  std::vector<int> last(program.values.size(), -1);
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    for (const ValueId id : program.ops[i].inputs)
      if (is_forward(program.ops[i]) && id != kNone) last[static_cast<std::size_t>(id)] = static_cast<int>(i);
  return last;
}

std::vector<ForwardCost> forward_costs(const Program& program, const OpTable& ops) {
  const std::vector<int> last = last_forward_readers(program);
  std::vector<ForwardCost> costs;
  std::set<ValueId> seen;
  double alive = 0;
  std::vector<double> ends(program.ops.size(), 0);  // bytes that are no longer needed after an op
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (!is_forward(op)) continue;
    ForwardCost cost = {.flops = flops_of(OpView(find_op(ops, op.type), program, op)),
                        .moved_bytes = bytes_of(program, op.inputs) + bytes_of(program, op.outputs)};
    for (const ValueId id : op.inputs)
      if (id != kNone && program.value(id).kind == ValueKind::parameter && seen.insert(id).second)
        cost.parameter_bytes += static_cast<double>(program.value(id).bytes());
    for (const ValueId id : op.outputs) {
      if (id == kNone || program.value(id).kind != ValueKind::activation) continue;
      const int until = last[static_cast<std::size_t>(id)];
      if (until <= static_cast<int>(i)) continue;
      alive += static_cast<double>(program.value(id).bytes());
      ends[static_cast<std::size_t>(until)] += static_cast<double>(program.value(id).bytes());
    }
    alive -= ends[i];
    cost.crossing_bytes = alive;
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace

StepCosts step_costs(const Program& program, const OpTable& ops) {
  StepCosts costs;
  for (const Value& value : program.values) add_kept(value, costs);
  costs.activation_bytes =
      static_cast<double>(plan_schedule(program, memory_without_scratch(program, ops)).arena_bytes);
  costs.forward = forward_costs(program, ops);
  costs.parameter_elements = elements_of(program, parameters_by_gradient(program));
  return costs;
}

}  // namespace fleetrun::runtime
