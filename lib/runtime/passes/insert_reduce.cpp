// reduce_strategy Reduce: every parameter has one rank that owns it, sums its gradient, updates it and sends it to the
// others. Owners are chosen in the order of the gradients: the rank that owns the fewest elements so far.
//
//   fc_grad ... -> w@GRAD                  =>    fc_grad ... -> w@GRAD
//   sgd param=w grad=w@GRAD -> param=w           reduce x=w@GRAD -> x=w@GRAD {op="sum"; root=1}
//                                                sgd param=w grad=w@GRAD -> param=w {owner=1}
//                                                broadcast x=w -> x=w {roots=[1]}
// Each rank then keeps the updates that it owns (keep_own_updates.h).
//
// strategy.sharding is the same inside groups of ranks. With several groups, owners of the same parameter also sum its gradient over the
// groups. In stage 3 nobody sends updated parameters: gather_parameters.h sends them before they are used.
//
//   reduce x=w@GRAD -> x=w@GRAD {communicator=1; op="sum"; root=1}
//   all_reduce x=w@GRAD -> x=w@GRAD {communicator=2; op="sum"; owner=1}
#include <algorithm>
#include <map>
#include <utility>

#include "runtime/graph/communicator_of.h"
#include "runtime/graph/owner_of.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/owners.h"
#include "runtime/passes/shared/sharding_groups.h"

namespace fleetrun::runtime {
namespace {

std::map<ValueId, int> owners_by_parameter(const Program& program, int ranks) {
  const std::vector<ValueId> parameters = parameters_by_gradient(program);
  const std::vector<int> owners = choose_owners(elements_of(program, parameters), ranks);
  std::map<ValueId, int> by_parameter;
  for (std::size_t i = 0; i < parameters.size(); ++i) by_parameter[parameters[i]] = owners[i];
  return by_parameter;
}

// What only the owner of a parameter does: its update, and what makes its gradient ready for that.
int owner_by_output(const Program& program, const Op& op, const std::map<ValueId, int>& owners) {
  const bool is_of_parameter = program.value(op.outputs.front()).kind == ValueKind::parameter ||
                               program.value(op.outputs.front()).of != kNone || op.inputs.empty();
  const ValueId made =
      is_of_parameter ? op.outputs.front() : op.inputs.front();  // gradient_norms: by its gradient
  const Value& value = program.value(made);
  if (op.role != Role::optimize || value.kind == ValueKind::state) return kNone;
  const auto owner = owners.find(value.kind == ValueKind::parameter ? made : value.of);
  return owner == owners.end() ? kNone : owner->second;
}

// The collectives that bring gradients to owners, and what owners find to all ranks of their group.
class Collectives {
 public:
  Collectives(const std::map<ValueId, int>& owners, const ShardingGroups& groups)
      : owners_(owners), groups_(groups) {}

  // Whether gradients of any owner are infinite is for all to know before the loss scale follows it. And so are the norms of all
  // gradients: each owner has put its own into places that are 0 on the other ranks.
  Op sum_over_owners(ValueId value) const { return sum("all_reduce", value, groups_.inside); }

  void bring_to_owner(ValueId gradient, ValueId parameter, std::vector<Op>& ops) const {
    const int owner = owners_.at(parameter);
    ops.push_back(sum("reduce", gradient, groups_.inside));
    ops.back().attributes["root"] = std::int64_t{owner};
    if (!groups_.across) return;
    ops.push_back(sum("all_reduce", gradient, *groups_.across));
    set_owner(ops.back(), owner);
  }

  Op broadcast(ValueId parameter) const {
    Op op = {.type = "broadcast",
             .inputs = {parameter},
             .outputs = {parameter},
             .attributes = {{"roots", Shape{owners_.at(parameter)}}},
             .role = Role::communication};
    set_communicator(op, groups_.inside);
    return op;
  }

 private:
  static Op sum(const std::string& type, ValueId value, int communicator) {
    Op op = {.type = type,
             .inputs = {value},
             .outputs = {value},
             .attributes = {{"op", std::string("sum")}},
             .role = Role::communication};
    set_communicator(op, communicator);
    return op;
  }

  const std::map<ValueId, int>& owners_;
  const ShardingGroups groups_;
};

}  // namespace

void insert_reduce(Program& program, const PassContext& context) {
  const ShardingGroups groups = sharding_groups(context);
  const std::map<ValueId, int> owners = owners_by_parameter(program, groups.ranks);
  const Collectives collectives(owners, groups);
  const bool sends_updated = !shards_parameters(context.strategy);
  std::vector<Op> ops;
  bool norms_are_summed = false;
  for (Op& op : program.ops) {
    const std::vector<ValueId> outputs = op.outputs;
    const Role role = op.role;
    if (const int owner = owner_by_output(program, op, owners); owner != kNone) set_owner(op, owner);
    if (op.type == "update_loss_scaling") ops.push_back(collectives.sum_over_owners(op.inputs.front()));
    if (op.type == "clip_by_global_norm" && !std::exchange(norms_are_summed, true))
      ops.push_back(collectives.sum_over_owners(op.inputs.back()));
    ops.push_back(std::move(op));
    for (const ValueId id : outputs) {
      if (id == kNone) continue;
      const Value& value = program.value(id);
      if (role == Role::backward && value.kind == ValueKind::gradient)
        collectives.bring_to_owner(id, value.of, ops);
      if (role == Role::optimize && value.kind == ValueKind::parameter && sends_updated)
        ops.push_back(collectives.broadcast(id));
    }
  }
  program.ops = std::move(ops);
}

}  // namespace fleetrun::runtime
