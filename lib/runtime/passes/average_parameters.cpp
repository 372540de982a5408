// With strategy.localsgd or adaptive_localsgd the ranks sum no gradients. After its update, each rank replaces its weights by the mean
// over the ranks, in the steps in which that is due.
//
//   sgd param=w grad=w@GRAD learning_rate=r -> param=w
//     =>
//   sgd param=w grad=w@GRAD learning_rate=r -> param=w
//   average_parameters param=w snapshot=w.snapshot -> param=w snapshot=w.snapshot {begin_step=1; k_steps=4} communication
//
// With adaptive_localsgd the op also reads the loss and the learning rate. The weights are the parameters and the running statistics of
// batch norms, which are parameters in PaddlePaddle.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

std::vector<ValueId> weights_to_average(const Program& program) {
  std::vector<ValueId> weights = program.of_kind(ValueKind::parameter);
  for (const Op& op : program.ops) {
    if (op.role != Role::forward) continue;
    for (const ValueId id : op.outputs)
      if (id != kNone && program.value(id).kind == ValueKind::state &&
          std::find(weights.begin(), weights.end(), id) == weights.end())
        weights.push_back(id);
  }
  return weights;
}

Op averaging_op(Program& program, std::int64_t k_steps, std::int64_t begin_step) {
  Op op = {.type = "average_parameters",
           .inputs = weights_to_average(program),
           .attributes = {{"begin_step", begin_step}, {"k_steps", k_steps}},
           .role = Role::communication};
  const std::vector<ValueId> weights = op.inputs;
  for (const ValueId weight : weights) {
    const Value value = program.value(weight);
    op.inputs.push_back(program.add_value(
        {.name = value.name + ".snapshot", .shape = value.shape, .kind = ValueKind::state, .of = weight}));
  }
  return op;
}

void add_schedule(Program& program, Op& op) {
  op.inputs.push_back(
      program.add_value({.name = "adaptive_localsgd.schedule", .shape = {4}, .kind = ValueKind::state}));
  op.outputs = op.inputs;
  op.inputs.push_back(program.find("loss"));
  op.inputs.push_back(program.find("learning_rate"));
}

std::string steps_until(int begin_step) {
  return begin_step == 1 ? "in step 1" : fmt::format("in each of the steps 1 to {}", begin_step);
}

}  // namespace

void average_parameters(Program& program, const PassContext& context) {
  if (context.strategy.adaptive_localsgd) {
    const job::AdaptiveLocalSgdSpec& configs = context.strategy.adaptive_localsgd_configs;
    Op op = averaging_op(program, configs.init_k_steps, configs.begin_step);
    add_schedule(program, op);
    program.ops.push_back(std::move(op));
    return context.tell(fmt::format(
        "adaptive_localsgd: the ranks average their parameters {}, then once in 1 to 16 steps, as loss and learning rate say",
        steps_until(configs.begin_step)));
  }
  const job::LocalSgdSpec& configs = context.strategy.localsgd_configs;
  Op op = averaging_op(program, configs.k_steps, configs.begin_step);
  op.inputs.push_back(kNone);
  op.outputs = op.inputs;
  op.inputs.insert(op.inputs.end(), {kNone, kNone});
  program.ops.push_back(std::move(op));
  context.tell(
      fmt::format("localsgd: the ranks average their parameters {}, then {}", steps_until(configs.begin_step),
                  configs.k_steps == 1 ? "in each step" : fmt::format("once in {} steps", configs.k_steps)));
}

}  // namespace fleetrun::runtime
