#include "runtime/passes/join_small_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/passes/shared/join_lists.h"

namespace fleetrun::runtime {
namespace {

// Ops that become one.
struct Group {
  OpId place = kNone;       // of the first of them
  OpId collective = kNone;  // that has summed what they read
  std::vector<OpView> ops;
  std::vector<ValueId> after;  // of all of them
};

class Joining {
 public:
  Joining(Program& program, const OpTable& ops)
      : program_(program), ops_(ops), writer_(program.values.size(), kNone) {}

  void run() {
    std::vector<bool> joins(program_.ops.size(), false);  // by OpId: an earlier op
    for (OpId id = 0; id < std::ssize(program_.ops); ++id) {
      const Op& op = program_.op(id);
      if (is_small(op)) joins[static_cast<std::size_t>(id)] = add({find_op(ops_, op.type), program_, op}, id);
      for (const ValueId output : op.outputs)
        if (output != kNone) writer_[static_cast<std::size_t>(output)] = id;
    }
    std::vector<std::pair<OpId, Op>> made;
    for (const Group& group : groups_) made.emplace_back(group.place, joined(group));
    for (auto& [place, op] : made) program_.ops[static_cast<std::size_t>(place)] = std::move(op);
    std::vector<Op> ops;
    for (std::size_t i = 0; i < joins.size(); ++i)
      if (!joins[i]) ops.push_back(std::move(program_.ops[i]));
    program_.ops = std::move(ops);
  }

 private:
  bool is_small(const Op& op) const {
    if (op.type == "check_finite_and_unscale") return true;
    if (op.type != "cast") return false;
    const bool of_parameter = program_.value(op.inputs.front()).kind == ValueKind::parameter;
    return op.role == Role::optimize || (op.role == Role::forward && of_parameter);
  }

  OpId writer(ValueId id) const { return writer_[static_cast<std::size_t>(id)]; }

  // The last op that has written one of them so far.
  template <typename Ids>
  OpId last_writer(const Ids& ids) const {
    OpId last = kNone;
    for (const ValueId id : ids) last = std::max(last, writer(id));
    return last;
  }

  // Small ops wait for each other only because sequential_execution keeps their order, and a stream does that, too.
  std::vector<ValueId> waits_for(const Op& op) const {
    std::vector<ValueId> ids = op.after;
    std::erase_if(ids,
                  [this](ValueId id) { return writer(id) != kNone && is_small(program_.op(writer(id))); });
    return ids;
  }

  static Op joined(const Group& group) {
    Op op = join_lists(group.ops);
    op.after = group.after;
    return op;
  }

  // To a group that is there, or to a new one. Returns whether it was there.
  bool add(const OpView& op, OpId id) {
    const OpId made_by = last_writer(op.input_ids("x"));
    const std::vector<ValueId> after = waits_for(op.op());
    const OpId ready = std::max(made_by, last_writer(after));
    const bool summed = made_by != kNone && program_.op(made_by).role == Role::communication;
    const OpId collective = summed ? made_by : kNone;
    const DType from = op.input("x").dtype;
    for (Group& group : groups_) {
      const OpView& first = group.ops.front();
      if (ready >= group.place || collective != group.collective || from != first.input("x").dtype ||
          !differ_in_lists_alone(first, op))
        continue;
      group.ops.push_back(op);
      group.after.insert(group.after.end(), after.begin(), after.end());
      return true;
    }
    groups_.push_back({.place = id, .collective = collective, .ops = {op}, .after = after});
    return false;
  }

  Program& program_;
  const OpTable& ops_;
  std::vector<OpId> writer_;  // by ValueId: the last one so far
  std::vector<Group> groups_;
};

// The casts of gradients that one collective sums become one op in front of it.
class JoiningCastGradients {
 public:
  JoiningCastGradients(Program& program, const OpTable& ops)
      : program_(program), ops_(ops), cast_(program.values.size(), kNone), left_out_(program.ops.size()) {}

  void run() {
    for (OpId id = 0; id < std::ssize(program_.ops); ++id) {
      const Op& op = program_.op(id);
      if (op.type == "cast_gradient") cast_[static_cast<std::size_t>(op.outputs.front())] = id;
      if (op.role == Role::communication) join_casts_in_front_of(op);
    }
    std::vector<Op> ops;
    for (std::size_t i = 0; i < left_out_.size(); ++i)
      if (!left_out_[i]) ops.push_back(std::move(program_.ops[i]));
    program_.ops = std::move(ops);
  }

 private:
  void join_casts_in_front_of(const Op& collective) {
    std::vector<OpId> ids;
    std::vector<OpView> casts;
    for (const ValueId input : collective.inputs)
      if (const OpId id = input == kNone ? kNone : cast_[static_cast<std::size_t>(input)]; id != kNone)
        if (const OpView cast(find_op(ops_, "cast_gradient"), program_, program_.op(id));
            casts.empty() || differ_in_lists_alone(casts.front(), cast)) {
          ids.push_back(id);
          casts.push_back(cast);
        }
    if (ids.size() < 2) return;
    const auto [first, last] = std::ranges::minmax(ids);
    Op joined = join_lists(casts);
    for (OpId id = first; id <= last; ++id)
      if (needs_any(program_.op(id), joined.outputs)) return;
    for (const OpId id : ids) left_out_[static_cast<std::size_t>(id)] = id != last;
    program_.ops[static_cast<std::size_t>(last)] = std::move(joined);
  }

  // As with sequential_execution, where each op waits for the one before it.
  static bool needs_any(const Op& op, const std::vector<ValueId>& outputs) {
    const auto is_output = [&](ValueId id) { return std::ranges::find(outputs, id) != outputs.end(); };
    return std::ranges::any_of(op.inputs, is_output) || std::ranges::any_of(op.after, is_output);
  }

  Program& program_;
  const OpTable& ops_;
  std::vector<OpId> cast_;  // by ValueId: the op that makes it of a wide gradient
  std::vector<bool> left_out_;
};

}  // namespace

void join_small_ops(Program& program, const OpTable& ops) {
  Joining(program, ops).run();
  JoiningCastGradients(program, ops).run();
}

}  // namespace fleetrun::runtime
