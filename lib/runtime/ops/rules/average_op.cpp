#include "runtime/ops/rules/average_op.h"

namespace fleetrun::runtime::ops {

AverageOp read_average_op(const OpView& op, std::int64_t alignment,
                          const std::function<std::int64_t(const Value&)>& elements_of) {
  AverageOp average = {.steps = {op.integer("begin_step"), op.integer("k_steps")},
                       .schedule = op.input_id("schedule"),
                       .loss = op.input_id("loss"),
                       .rate = op.input_id("learning_rate"),
                       .tensors = {}};
  const auto params = op.input_ids("param"), snapshots = op.input_ids("snapshot");
  for (std::size_t i = 0; i < params.size(); ++i) {
    const std::int64_t count = elements_of(op.program().value(params[i]));
    average.tensors.push_back({params[i], snapshots[i], average.elements, count});
    average.elements += (count + alignment - 1) / alignment * alignment;
  }
  return average;
}

}  // namespace fleetrun::runtime::ops
