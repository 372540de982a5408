#include "runtime/passes/pipeline/assign_stages.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/graph/owner_of.h"
#include "runtime/passes/shared/forward_cuts.h"

namespace fleetrun::runtime {
namespace {

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

// Follows values from op to op. `of_value_` has the stage that makes a value, or that has a parameter or state.
class Assignment {
 public:
  Assignment(Program& program, int stages)
      : program_(program), last_stage_(stages - 1), of_value_(program.values.size(), kNone) {}

  void assign_forward() {
    const int ops = count_forward_ops(program_);
    int next = last_stage_;  // of the op after a reorder, which the layouts brought in
    for (OpId id = ops; id-- > 0;) {
      Op& op = program_.ops[slot(id)];
      if (owner_of(op) != kNone) next = owner_of(op);
      give(op, next);
    }
    for (OpId id = 0; id < ops; ++id)
      for (const ValueId input : program_.op(id).inputs) note_kept(input, owner_of(program_.op(id)));
    for (const ValueId id : program_.of_kind(ValueKind::state)) note_of_parameter(id);
    for (const ValueId id : program_.of_kind(ValueKind::gradient)) note_of_parameter(id);
    find_last_readers(ops);
  }

  void assign_rest(const OpTable& table) {
    std::vector<Op> ops;
    for (Op& op : program_.ops) {
      if (op.role == Role::backward) give(op, backward_stage(op));
      if (op.role == Role::communication) set_owner(op, stage_of_parameter(op));  // sums over replicas
      if (op.role != Role::optimize) {
        ops.push_back(std::move(op));
        continue;
      }
      for (Op& part : divide(op, find_op(table, op.type))) {
        give(part, update_stage(part));
        ops.push_back(std::move(part));
      }
    }
    program_.ops = std::move(ops);
  }

 private:
  bool is_kept(ValueId id) const {
    const ValueKind kind = program_.value(id).kind;
    return kind == ValueKind::parameter || kind == ValueKind::state;
  }

  void give(Op& op, int stage) {
    if (stage == kNone) return;
    set_owner(op, stage);
    for (const ValueId id : op.outputs)
      if (id != kNone && !is_kept(id)) of_value_[slot(id)] = stage;
  }

  void note_kept(ValueId id, int stage) {
    if (id == kNone || !is_kept(id)) return;
    if (of_value_[slot(id)] == kNone) of_value_[slot(id)] = stage;
    if (of_value_[slot(id)] != stage)
      throw Error(ErrorKind::config,
                  fmt::format("strategy.pipeline: {} is used in stages {} and {}, wanted in one",
                              program_.value(id).name, of_value_[slot(id)], stage));
  }

  void note_of_parameter(ValueId id) {
    if (const ValueId parameter = program_.value(id).of; parameter != kNone)
      of_value_[slot(id)] = of_value_[slot(parameter)];
  }

  void find_last_readers(int forward_ops) {
    last_reader_ = of_value_;
    for (OpId id = 0; id < forward_ops; ++id)
      for (const ValueId input : program_.op(id).inputs)
        if (input != kNone)
          last_reader_[slot(input)] = std::max(last_reader_[slot(input)], owner_of(program_.op(id)));
  }

  // The stage of the parameter that an op works for; kNone: of none.
  int stage_of_parameter(const Op& op) const {
    int stage = kNone;
    const auto look = [&](ValueId id) {
      if (id == kNone) return;
      const bool belongs = is_kept(id) || program_.value(id).of != kNone;
      const ValueId parameter = program_.value(id).of != kNone ? program_.value(id).of : id;
      if (!belongs) return;
      const int found = of_value_[slot(parameter)];
      if (stage != kNone && found != kNone && found != stage)
        fail(op, "works for parameters of several stages");
      if (found != kNone) stage = found;
    };
    std::for_each(op.inputs.begin(), op.inputs.end(), look);
    std::for_each(op.outputs.begin(), op.outputs.end(), look);
    return stage;
  }

  // That of the op that it repeats (recompute), or of its parameter. Without one: the last stage that has all it reads, so that a gradient is finished before it travels.
  int backward_stage(const Op& op) const {
    const int pinned = owner_of(op) != kNone ? owner_of(op) : stage_of_parameter(op);
    int latest = last_stage_;
    for (const ValueId id : op.inputs) {
      if (id == kNone || program_.value(id).kind != ValueKind::activation) continue;
      const int made = of_value_[slot(id)];
      const bool is_forward = last_reader_[slot(id)] != kNone;
      if (!is_forward && pinned > made) fail(op, "reads a gradient of an earlier stage");
      latest = std::min(latest, is_forward ? last_reader_[slot(id)] : made);
    }
    return pinned != kNone ? pinned : latest;
  }

  int stage_of_value(ValueId id) const {
    const ValueId parameter = program_.value(id).of;
    return of_value_[slot(parameter != kNone ? parameter : id)];
  }

  // An op over a list of parameters of several stages becomes one op for each of these stages.
  std::vector<Op> divide(const Op& op, const OpDef& def) const {
    std::map<int, std::vector<std::size_t>> members;  // of the lists, by stage
    const ArgumentPlaces inputs(def.inputs, op.inputs.size()), outputs(def.outputs, op.outputs.size());
    if (def.inputs.empty() || !def.inputs.front().ends_with('*')) return {op};
    for (std::size_t i = 0; i < inputs.of(0).count; ++i) members[stage_of_value(op.inputs[i])].push_back(i);
    if (members.size() == 1) return {op};
    std::vector<Op> parts;
    for (const auto& [stage, chosen] : members) {
      Op part = op;
      part.inputs = choose(def.inputs, inputs, op.inputs, chosen);
      part.outputs = choose(def.outputs, outputs, op.outputs, chosen);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  static std::vector<ValueId> choose(const std::vector<std::string>& arguments, const ArgumentPlaces& places,
                                     const std::vector<ValueId>& ids,
                                     const std::vector<std::size_t>& members) {
    std::vector<ValueId> chosen;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::size_t first = places.of(static_cast<int>(i)).first;
      if (!arguments[i].ends_with('*'))
        chosen.push_back(ids[first]);
      else
        for (const std::size_t member : members) chosen.push_back(ids[first + member]);
    }
    return chosen;
  }

  int update_stage(const Op& op) const {
    int stage = stage_of_parameter(op);
    for (const ValueId id : op.inputs)
      if (stage == kNone && id != kNone) stage = of_value_[slot(id)];
    return stage;
  }

  [[noreturn]] void fail(const Op& op, const char* what) const {
    throw Error(ErrorKind::internal, fmt::format("strategy.pipeline: op {} {}", op.type, what));
  }

  Program& program_;
  const int last_stage_;
  std::vector<int> of_value_;     // by ValueId
  std::vector<int> last_reader_;  // by ValueId: of the forward part; kNone for values of the backward part
};

// For each boundary: written on one side and read on the other.
template <typename Crosses>
std::vector<ValueId> values_that(const Program& program, Role role, Crosses&& crosses) {
  std::vector<int> writer(program.values.size(), kNone);
  std::vector<bool> chosen(program.values.size(), false);
  std::vector<ValueId> values;
  for (const Op& op : program.ops) {
    if (op.role == Role::optimize) continue;
    for (const ValueId id : op.inputs) {
      if (id == kNone || chosen[slot(id)] || writer[slot(id)] == kNone) continue;
      if (!crosses(writer[slot(id)], owner_of(op))) continue;
      chosen[slot(id)] = true;
      values.push_back(id);
    }
    for (const ValueId id : op.outputs)
      if (id != kNone && op.role == role && program.value(id).kind == ValueKind::activation)
        writer[slot(id)] = owner_of(op);
  }
  return values;
}

}  // namespace

void assign_stages(Program& program, const PassContext& context) {
  Assignment assignment(program, context.stages);
  assignment.assign_forward();
  assignment.assign_rest(context.ops);
}

void assign_evaluation_stages(Program& evaluation, const Program& training) {
  std::vector<int> of_value(evaluation.values.size(), 0);
  for (std::size_t i = 0; i < evaluation.values.size(); ++i)
    if (const ValueId same = training.find(evaluation.values[i].name); same != kNone)
      if (const ValueKind kind = training.value(same).kind;
          kind == ValueKind::parameter || kind == ValueKind::state)
        of_value[i] = owner_of_user(training, same);
  for (Op& op : evaluation.ops) {
    int stage = 0;
    for (const ValueId id : op.inputs)
      if (id != kNone) stage = std::max(stage, of_value[slot(id)]);
    set_owner(op, stage);
    for (const ValueId id : op.outputs)
      if (id != kNone) of_value[slot(id)] = stage;
  }
}

std::vector<ValueId> crossing_values(const Program& program, int stage) {
  return values_that(program, Role::forward,
                     [stage](int writer, int reader) { return writer <= stage && reader > stage; });
}

std::vector<ValueId> crossing_gradients(const Program& program, int stage) {
  return values_that(program, Role::backward,
                     [stage](int writer, int reader) { return writer > stage && reader <= stage; });
}

}  // namespace fleetrun::runtime
