#include "runtime/passes/keep_own_updates.h"

#include "runtime/graph/owner_of.h"

namespace fleetrun::runtime {
namespace {

// Takes the values away for which `wanted` is false; nobody may read or write them.
void keep_values(Program& program, const std::vector<bool>& wanted) {
  std::vector<ValueId> moved(program.values.size(), kNone);
  std::vector<Value> values;
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    if (!wanted[i]) continue;
    moved[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(program.values[i]));
  }
  const auto move_all = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids)
      if (id != kNone) id = moved[static_cast<std::size_t>(id)];
  };
  program.values = std::move(values);
  for (Value& value : program.values)
    if (value.of != kNone) value.of = moved[static_cast<std::size_t>(value.of)];
  for (Op& op : program.ops) {
    move_all(op.inputs);
    move_all(op.outputs);
    move_all(op.after);
    std::erase(op.after, kNone);  // what another rank's update would have made
  }
  move_all(program.fetches);
  for (auto& ids : program.contiguous) move_all(ids);
}

// Nobody waits for what another rank's update would have made.
void wait_for_own_only(Program& program) {
  std::vector<bool> there(program.values.size(), false);
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = program.values[i].kind != ValueKind::activation;
  for (Op& op : program.ops) {
    std::erase_if(op.after, [&](ValueId id) { return !there[static_cast<std::size_t>(id)]; });
    for (const ValueId id : op.outputs)
      if (id != kNone) there[static_cast<std::size_t>(id)] = true;
  }
}

}  // namespace

void keep_own_updates(Program& program, int rank) {
  std::vector<bool> wanted(program.values.size(), true);
  for (const ValueId state : program.of_kind(ValueKind::state)) {
    const int owner = owner_of_user(program, state);
    wanted[static_cast<std::size_t>(state)] = owner == kNone || owner == rank;
  }
  std::erase_if(program.ops, [rank](const Op& op) { return owner_of(op) != kNone && owner_of(op) != rank; });
  wait_for_own_only(program);
  keep_values(program, wanted);
}

}  // namespace fleetrun::runtime
