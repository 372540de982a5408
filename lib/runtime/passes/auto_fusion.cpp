// Elementwise ops that read each other's results become one op, which does their steps over pieces that stay in the cache. It
// takes the place of the last of them; no other op may read their results before that.
//
//   elementwise_add x y -> s
//   relu x=s -> r                    =>    elementwise_group x0=x x1=y -> y0=r y1=k
//   scale x=r -> k {bias; scale}             {code="t0 = elementwise_add x0 x1; y0 = relu t0; y1 = scale y0 2 0"}
//   conv2d x=r ...                         conv2d x=r ...
// The results stay the same to the bit.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "runtime/ops/rules/elementwise_code.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/rewrite.h"

namespace fleetrun::runtime {
namespace {

using Group = std::vector<OpId>;  // ascending

class Grouping {
 public:
  Grouping(Program& program, const OpTable& ops) : program_(program), rewrite_(program, ops) {}

  // The number of groups that became one op.
  int run() {
    for (OpId op = 0; op < rewrite_.size(); ++op)
      if (elementwise(op)) join_with_writers(op);
    int found = 0;
    for (const auto& [leader, group] : groups_) {
      if (group.size() < 2) continue;
      rewrite_.replace(group, group.back(), fused(group));
      ++found;
    }
    rewrite_.finish();
    return found;
  }

 private:
  static bool within_a_step(const Value& value) {
    return value.dtype == DType::f32 &&
           (value.kind == ValueKind::activation || value.kind == ValueKind::feed);
  }

  bool elementwise(OpId id) const {
    const Op& op = program_.op(id);
    if (find_elementwise(op.type) == nullptr) return false;
    const auto fits = [&](ValueId value) { return within_a_step(program_.value(value)); };
    return std::all_of(op.inputs.begin(), op.inputs.end(), fits) &&
           std::all_of(op.outputs.begin(), op.outputs.end(), fits);
  }

  const Shape& shape_of(OpId op) const { return program_.value(program_.op(op).outputs.front()).shape; }

  void join_with_writers(OpId op) {
    groups_[op] = {op};
    leader_[op] = op;
    for (const ValueId input : program_.op(op).inputs) {
      const auto writer = leader_.find(rewrite_.writer(input));
      if (writer == leader_.end() || writer->second == leader_.at(op)) continue;
      Group joined;
      std::merge(groups_.at(writer->second).begin(), groups_.at(writer->second).end(),
                 groups_.at(leader_.at(op)).begin(), groups_.at(leader_.at(op)).end(),
                 std::back_inserter(joined));
      if (can_be_one(joined)) keep(joined, writer->second, leader_.at(op));
    }
  }

  void keep(const Group& joined, OpId one, OpId other) {
    groups_.erase(one);
    groups_.erase(other);
    for (const OpId member : joined) leader_[member] = joined.front();
    groups_[joined.front()] = joined;
  }

  bool can_be_one(const Group& group) const {
    const Op& first = program_.op(group.front());
    for (const OpId member : group) {
      if (shape_of(member) != shape_of(group.front()) || program_.op(member).role != first.role) return false;
      for (const OpId reader : rewrite_.readers(program_.op(member).outputs.front()))
        if (reader != kNone && reader < group.back() && !contains(group, reader)) return false;
    }
    return static_cast<int>(group.size()) <= kGroupSteps &&
           static_cast<int>(inputs_of(group).size()) <= kGroupInputs &&
           static_cast<int>(outputs_of(group).size()) <= kGroupOutputs;
  }

  static bool contains(const Group& group, OpId op) {
    return std::binary_search(group.begin(), group.end(), op);
  }

  std::vector<ValueId> inputs_of(const Group& group) const {
    std::vector<ValueId> inputs;
    for (const OpId member : group)
      for (const ValueId id : program_.op(member).inputs)
        if (!contains(group, rewrite_.writer(id)) &&
            std::find(inputs.begin(), inputs.end(), id) == inputs.end())
          inputs.push_back(id);
    return inputs;
  }

  // What others read, or nobody: somebody may ask for it.
  std::vector<ValueId> outputs_of(const Group& group) const {
    std::vector<ValueId> outputs;
    for (const OpId member : group) {
      const ValueId made = program_.op(member).outputs.front();
      const auto& readers = rewrite_.readers(made);
      const bool inside = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](OpId reader) {
        return contains(group, reader);
      });
      if (!inside) outputs.push_back(made);
    }
    return outputs;
  }

  Op fused(const Group& group) const {
    std::map<ValueId, ElementwisePlace> places;
    Arguments inputs, outputs;
    for (const ValueId id : inputs_of(group)) {
      places[id] = {'x', static_cast<int>(inputs.size())};
      inputs.emplace_back(fmt::format("x{}", inputs.size()), id);
    }
    for (const ValueId id : outputs_of(group)) {
      places[id] = {'y', static_cast<int>(outputs.size())};
      outputs.emplace_back(fmt::format("y{}", outputs.size()), id);
    }
    int between = 0;
    ElementwiseCode code;
    for (const OpId member : group) {
      const ValueId made = program_.op(member).outputs.front();
      if (places.count(made) == 0) places[made] = {'t', between++};
      code.push_back(step(member, places));
    }
    return rewrite_.make("elementwise_group", inputs, outputs, {{"code", print_elementwise_code(code)}},
                         program_.op(group.front()).role);
  }

  ElementwiseStep step(OpId member, const std::map<ValueId, ElementwisePlace>& places) const {
    const OpView op = rewrite_.view(member);
    const ElementwiseOp& known = *find_elementwise(op.op().type);
    ElementwiseStep made = {.op = op.op().type, .result = places.at(op.op().outputs.front())};
    for (const char* argument : known.arguments) made.arguments.push_back(places.at(op.input_id(argument)));
    for (const char* number : known.numbers) made.numbers.push_back(op.number(number));
    return made;
  }

  Program& program_;
  Rewrite rewrite_;
  std::map<OpId, Group> groups_;  // by their first member
  std::map<OpId, OpId> leader_;   // of each member
};

}  // namespace

void auto_fusion(Program& program, const PassContext& context) {
  if (!device_has_all(context, "auto_fusion", {"elementwise_group"})) return;
  context.tell(fmt::format("auto_fusion: detected {} groups", Grouping(program, context.ops).run()));
}

}  // namespace fleetrun::runtime
