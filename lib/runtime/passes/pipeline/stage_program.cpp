#include "runtime/passes/pipeline/stage_program.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/graph/communicator_of.h"
#include "runtime/graph/owner_of.h"
#include "runtime/passes/pipeline/assign_stages.h"

namespace fleetrun::runtime {
namespace {

// More than any program has random ops. DropoutDraw has 24 bits for all keys: enough for 4,096 micro-batches.
constexpr std::int64_t kKeysOfMicroBatch = 1 << 12;

// More than ten members: what an op becomes depends on all that was built of the stage before it.
class StageBuilder {
 public:
  StageBuilder(const Program& whole, const StagePlan& plan)
      : whole_(whole), plan_(plan), kept_(whole.values.size(), kNone) {
    micro_.assign(static_cast<std::size_t>(plan.micro_batches), kept_);
    is_of_micro_.assign(whole.values.size(), false);
    for (const Op& op : whole.ops)
      if (op.role != Role::optimize)
        for (const std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
          for (const ValueId id : *ids)
            if (id != kNone && !is_kept(id)) is_of_micro_[at(id)] = true;
    const PipelinePlace& place = plan.place;
    if (!place.is_first()) {
      values_in_ = crossing_values(whole, place.stage - 1);
      gradients_out_ = crossing_gradients(whole, place.stage - 1);
    }
    if (!place.is_last()) {
      values_out_ = crossing_values(whole, place.stage);
      gradients_in_ = crossing_gradients(whole, place.stage);
    }
  }

  Program build(const std::vector<Turn>& turns) {
    for (const Turn& turn : turns) take(turn);
    add_sums_over_replicas();
    find_sums_over_stages();
    add_own(Role::optimize, kNone);
    for (const ValueId id : whole_.fetches) add_fetch(id);
    return std::move(program_);
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  bool is_kept(ValueId id) const {
    const ValueKind kind = whole_.value(id).kind;
    return kind == ValueKind::parameter || kind == ValueKind::state;
  }

  void take(const Turn& turn) {
    switch (turn.act) {
      case Act::receive_values:
        return transfer(turn, values_in_);
      case Act::receive_gradients:
        return transfer(turn, gradients_in_);
      case Act::send_values:
        return transfer(turn, values_out_);
      case Act::send_gradients:
        return transfer(turn, gradients_out_);
      case Act::forward:
        return add_own(Role::forward, turn.micro_batch);
      case Act::backward:
        return add_own(Role::backward, turn.micro_batch);
    }
  }

  void transfer(const Turn& turn, const std::vector<ValueId>& values) {
    const bool receives = turn.act == Act::receive_values || turn.act == Act::receive_gradients;
    for (const ValueId id : values) {
      const ValueId value = mapped(id, turn.micro_batch);
      Op op = {.type = receives ? "recv" : "send", .role = Role::communication};
      set_communicator(op, communicator_for(turn.act, plan_.place));
      if (receives) {
        const Value& made = program_.value(value);
        op.outputs = {value};
        op.attributes["shape"] = made.shape;
        op.attributes["dtype"] = std::string(describe(made.dtype));
        op.after = previous_;
        previous_.push_back(value);
      } else {
        op.inputs = {value};
      }
      program_.ops.push_back(std::move(op));
    }
  }

  // Ops of the backward part that have no owner do not exist; updates without one are for every stage.
  void add_own(Role role, int micro_batch) {
    for (const Op& op : whole_.ops) {
      if (op.role != role) continue;
      const int owner = owner_of(op);
      if (role == Role::optimize) add_sums_before(op);
      if (owner == plan_.place.stage || owner == kNone) add(op, micro_batch);
    }
  }

  // Of whole gradients, when all micro-batches are done.
  void add_sums_over_replicas() {
    for (Op op : whole_.ops) {
      if (op.role != Role::communication || owner_of(op) != plan_.place.stage) continue;
      for (std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
        for (ValueId& id : *ids) id = mapped(id, kNone);
      op.after.clear();
      set_owner(op, kNone);
      set_communicator(op, communicator_of_replicas(plan_.place));
      program_.ops.push_back(std::move(op));
    }
  }

  // What several stages update in place, such as the norms of the gradients, is summed before another op reads it.
  void find_sums_over_stages() {
    std::map<ValueId, std::set<int>> writers;
    for (const Op& op : whole_.ops)
      for (const ValueId id : op.outputs)
        if (op.role == Role::optimize && id != kNone && !is_kept(id) && owner_of(op) != kNone)
          writers[id].insert(owner_of(op));
    for (const auto& [id, stages] : writers)
      if (stages.size() > 1) to_sum_.insert(id);
  }

  void add_sums_before(const Op& op) {
    for (const ValueId id : op.inputs) {
      const bool writes = std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
      if (writes || to_sum_.erase(id) == 0) continue;
      const ValueId value = mapped(id, kNone);
      Op sum = {.type = "all_reduce",
                .inputs = {value},
                .outputs = {value},
                .attributes = {{"op", std::string("sum")}},
                .role = Role::communication};
      set_communicator(sum, communicator_of_stages(plan_.place));
      program_.ops.push_back(std::move(sum));
    }
  }

  void add(Op op, int micro_batch) {
    for (std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
      for (ValueId& id : *ids) id = mapped(id, micro_batch);
    adjust(op, micro_batch);
    set_owner(op, kNone);  // within the stage all ops are its own
    const std::vector<ValueId> outputs = op.outputs;
    push(std::move(op));
    if (plan_.micro_batches == 1) return;
    for (const ValueId id : outputs)
      if (const auto gradient = gradients_.find(id); gradient != gradients_.end() && micro_batch != kNone)
        add_to_sum(gradient->second, id, micro_batch);
  }

  void adjust(Op& op, int micro_batch) const {
    if (op.type == "fill" && op.role == Role::backward)
      op.attributes["value"] = std::get<double>(op.attributes.at("value")) / plan_.micro_batches;
    if (const auto key = op.attributes.find("key"); key != op.attributes.end())  // of a random op
      key->second = std::get<std::int64_t>(key->second) + kKeysOfMicroBatch * micro_batch;
  }

  void push(Op op) {
    op.after = std::exchange(previous_, {});
    for (const ValueId id : op.outputs)
      if (id != kNone) previous_.push_back(id);
    program_.ops.push_back(std::move(op));
  }

  // The last sum is the gradient that the optimizer reads.
  void add_to_sum(ValueId gradient, ValueId made, int micro_batch) {
    ValueId& sum = sums_[gradient];
    if (micro_batch == 0) {
      sum = made;
      return;
    }
    Value next = program_.value(made);
    next.name = whole_.value(gradient).name;
    if (micro_batch + 1 < plan_.micro_batches) next.name += fmt::format(".sum{}", micro_batch);
    const ValueId added = program_.add_value(std::move(next));
    push({.type = "elementwise_add", .inputs = {sum, made}, .outputs = {added}, .role = Role::backward});
    sum = kept_[at(gradient)] = added;
  }

  // The value of this program that stands for one of the whole. `micro_batch`: kNone for the optimizer, which reads sums.
  ValueId mapped(ValueId id, int micro_batch) {
    if (id == kNone) return kNone;
    const bool is_sum = micro_batch == kNone && kept_[at(id)] != kNone;
    ValueId& place =
        is_of_micro_[at(id)] && !is_sum ? micro_[at(std::max(0, micro_batch))][at(id)] : kept_[at(id)];
    if (place != kNone) return place;
    Value value = whole_.value(id);
    const bool is_part = plan_.micro_batches > 1 && value.kind == ValueKind::gradient;
    if (is_of_micro_[at(id)]) value.name = name_in_micro_batch(value.name, micro_batch, plan_.micro_batches);
    if (is_part) value.kind = ValueKind::activation;
    if (value.of != kNone) value.of = mapped(value.of, micro_batch);
    place = program_.add_value(std::move(value));
    if (is_part) gradients_[place] = id;
    return place;
  }

  void add_fetch(ValueId id) {
    for (const std::vector<ValueId>& values : micro_)
      if (values[at(id)] != kNone) program_.fetches.push_back(values[at(id)]);
  }

  const Program& whole_;
  const StagePlan plan_;
  Program program_;
  std::vector<ValueId> kept_;  // by ValueId of the whole: parameters, states, values of the optimizer
  std::vector<std::vector<ValueId>> micro_;  // the same by micro-batch
  std::vector<bool> is_of_micro_;            // by ValueId of the whole
  std::vector<ValueId> values_in_, values_out_, gradients_in_, gradients_out_;
  std::map<ValueId, ValueId> gradients_;  // of one micro-batch, and what they are in the whole
  std::map<ValueId, ValueId> sums_;       // so far, by what they are in the whole
  std::set<ValueId> to_sum_;              // over all stages, by what they are in the whole
  std::vector<ValueId> previous_;         // what the last op made
};

}  // namespace

std::string name_in_micro_batch(const std::string& name, int micro_batch, int micro_batches) {
  return micro_batches == 1 ? name : fmt::format("{}.m{}", name, micro_batch);
}

Program stage_program(const Program& whole, const StagePlan& plan) {
  return StageBuilder(whole, plan).build(plan_turns(plan.schedule, plan.place, plan.micro_batches));
}

Program evaluation_stage(const Program& whole, const PipelinePlace& place) {
  return StageBuilder(whole, {.place = place}).build(plan_evaluation(place));
}

}  // namespace fleetrun::runtime
