#include "runtime/optim/local_training.h"

#include <algorithm>

namespace fleetrun::runtime {
namespace {

const Op* averaging_of(const Program& program) {
  const auto found = std::find_if(program.ops.begin(), program.ops.end(),
                                  [](const Op& op) { return op.type == "average_parameters"; });
  return found == program.ops.end() ? nullptr : &*found;
}

}  // namespace

bool trains_locally(const Program& program) { return averaging_of(program) != nullptr; }

// Of the op's outputs, the first half are weights, then come their snapshots and the schedule.
std::vector<std::pair<ValueId, ValueId>> snapshots_of(const Program& program) {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  const Op* const op = averaging_of(program);
  if (op == nullptr) return pairs;
  const std::size_t count = op->outputs.size() / 2;
  for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(op->outputs[i], op->outputs[count + i]);
  return pairs;
}

std::vector<ValueId> states_of_averaging(const Program& program) {
  std::vector<ValueId> states;
  for (const auto& [weight, snapshot] : snapshots_of(program)) states.push_back(snapshot);
  const Op* const op = averaging_of(program);
  if (op != nullptr && op->outputs.back() != kNone) states.push_back(op->outputs.back());
  return states;
}

}  // namespace fleetrun::runtime
