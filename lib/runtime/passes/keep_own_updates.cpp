#include "runtime/passes/keep_own_updates.h"

#include <numeric>
#include <string_view>
#include <utility>

#include "runtime/graph/owner_of.h"

namespace fleetrun::runtime {
namespace {

constexpr std::string_view kGather = "gather_parameter";

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

// The owner sends the parameter from where it is and reads it there. The others have only the copy.
//
//   gather_parameter x=w -> y=w.forward {owner=1}        rank 1: broadcast x=w -> x=w {owner=1; roots=[1]}
//                                                   =>   others: gather_parameter -> y=w.forward {owner=1}
// Returns what is gone.
std::vector<ValueId> settle_gathers(Program& program, int rank) {
  std::vector<ValueId> stand_in(program.values.size());
  std::iota(stand_in.begin(), stand_in.end(), 0);
  std::vector<ValueId> gone;
  for (Op& op : program.ops) {
    if (op.type == kGather && owner_of(op) == rank) {
      const ValueId parameter = op.inputs.front();
      gone.push_back(op.outputs.front());
      stand_in[static_cast<std::size_t>(gone.back())] = parameter;
      op.type = "broadcast";
      op.outputs = {parameter};
      op.attributes.erase("shape");
      op.attributes["roots"] = Shape{rank};
    } else if (op.type == kGather) {
      gone.push_back(std::exchange(op.inputs.front(), kNone));
    }
    for (ValueId& id : op.inputs)
      if (id != kNone) id = stand_in[static_cast<std::size_t>(id)];
  }
  return gone;
}

void free_gradients_of_others(Program& program, int rank) {
  for (const Op& op : program.ops)
    if (op.type == "reduce" && std::get<std::int64_t>(op.attributes.at("root")) != rank)
      for (const ValueId gradient : op.inputs) program.value(gradient).kind = ValueKind::activation;
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

void keep_own_updates(Program& program, int rank, OwnGradients gradients) {
  std::vector<bool> wanted(program.values.size(), true);
  for (const ValueId state : program.of_kind(ValueKind::state)) {
    const int owner = owner_of_user(program, state);
    wanted[static_cast<std::size_t>(state)] = owner == kNone || owner == rank;
  }
  std::erase_if(program.ops, [rank](const Op& op) {
    return owner_of(op) != kNone && owner_of(op) != rank && op.type != kGather;
  });
  for (const ValueId id : settle_gathers(program, rank)) wanted[static_cast<std::size_t>(id)] = false;
  if (gradients == OwnGradients::alone) free_gradients_of_others(program, rank);
  wait_for_own_only(program);
  keep_values(program, wanted);
}

}  // namespace fleetrun::runtime
