#include "runtime/passes/insert_all_reduce.h"

namespace fleetrun::runtime {
namespace {

// The op `fill` that starts the backward part.
bool is_loss_gradient(const Op& op) { return op.type == "fill" && op.role == Role::backward; }

Op all_reduce(ValueId gradient) {
  return {.type = "all_reduce",
          .inputs = {gradient},
          .outputs = {gradient},
          .attributes = {{"op", std::string("sum")}},
          .role = Role::communication};
}

}  // namespace

void insert_all_reduce(Program& program, const PassContext& context) {
  if (context.world_size == 1) return;
  const bool mean =
      context.strategy.build_strategy.gradient_scale_strategy == job::GradientScale::CoeffNumDevice;
  std::vector<Op> ops;
  for (Op& op : program.ops) {
    if (mean && is_loss_gradient(op)) op.attributes["value"] = 1.0 / context.world_size;
    const bool writes = op.role == Role::backward;
    const std::vector<ValueId> outputs = op.outputs;
    ops.push_back(std::move(op));
    for (const ValueId id : outputs)
      if (writes && id != kNone && program.value(id).kind == ValueKind::gradient)
        ops.push_back(all_reduce(id));
  }
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
