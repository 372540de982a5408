#include "runtime/plan/step_costs.h"

#include <algorithm>

#include "runtime/exec/schedule.h"

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
  if (value.kind == ValueKind::parameter) costs.parameter_bytes += bytes;
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

std::vector<ForwardCost> forward_costs(const Program& program, const OpTable& ops) {
  std::vector<ForwardCost> costs;
  for (const Op& op : program.ops)
    if (op.role == Role::forward)
      costs.push_back({.flops = flops_of(OpView(find_op(ops, op.type), program, op)),
                       .moved_bytes = bytes_of(program, op.inputs) + bytes_of(program, op.outputs)});
  return costs;
}

}  // namespace

StepCosts step_costs(const Program& program, const OpTable& ops) {
  StepCosts costs;
  for (const Value& value : program.values) add_kept(value, costs);
  costs.activation_bytes =
      static_cast<double>(plan_arena_bytes(program, memory_without_scratch(program, ops)));
  costs.forward = forward_costs(program, ops);
  for (const Op& op : program.ops)
    if (op.type == "send") costs.sent_bytes += bytes_of(program, op.inputs);
  return costs;
}

}  // namespace fleetrun::runtime
