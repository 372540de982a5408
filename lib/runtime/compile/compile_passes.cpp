#include "runtime/compile/compile_passes.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "job/spec/settle_optimizer.h"
#include "runtime/compile/same_collectives.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/owner_of.h"
#include "runtime/graph/verify.h"
#include "runtime/optim/append_optimizer.h"
#include "runtime/optim/average_weights.h"
#include "runtime/optim/clip_gradients.h"
#include "runtime/optim/loss_scaling.h"
#include "runtime/optim/merge_gradients.h"
#include "runtime/optim/narrow_gradients.h"
#include "runtime/optim/parameter_rules.h"
#include "runtime/passes/cast_forward.h"
#include "runtime/passes/feed_pixels.h"
#include "runtime/passes/gather_parameters.h"
#include "runtime/passes/join_small_ops.h"
#include "runtime/passes/keep_own_updates.h"
#include "runtime/passes/pipeline/assign_stages.h"
#include "runtime/passes/pipeline/stage_program.h"
#include "runtime/passes/shared/sharding_groups.h"

namespace fleetrun::runtime {
namespace {

bool has_smaller(const Compilation& compilation) { return !compilation.smaller.ops.empty(); }

Builder training_builder(Compilation& compilation) { return {compilation.training, compilation.context.ops}; }

// Gradients that travel need not wait for each other, and with reduce_strategy Reduce or sharding every rank has only some of them.
GradientUse gradient_use(const PassContext& context) {
  const bool travel = context.world_size > 1;
  const bool of_some = context.strategy.build_strategy.reduce_strategy == job::ReduceStrategy::Reduce;
  return {.one_by_one = travel, .zero_one_by_one = (travel && of_some) || context.strategy.pipeline};
}

// What the strategy makes of the optimizer, and which parameters do not decay.
void tell_optimizer(const Compilation& compilation, const job::OptimizerSpec& optimizer) {
  const PassContext& context = compilation.context;
  const Program& program = compilation.training;
  if (context.strategy.lars) context.tell("strategy.lars: LARS instead of momentum updates the parameters");
  if (context.strategy.lamb) context.tell("strategy.lamb: LAMB instead of Adam updates the parameters");
  const std::vector<std::string>& excluded = optimizer.exclude_from_weight_decay;
  if (excluded.empty()) return;
  const std::vector<ValueId> parameters = program.of_kind(ValueKind::parameter);
  const auto count = std::count_if(parameters.begin(), parameters.end(),
                                   [&](ValueId id) { return is_excluded(program, id, excluded); });
  context.tell(
      fmt::format("exclude_from_weight_decay: {} of {} parameters do not decay", count, parameters.size()));
  for (const std::string& entry : without_effect(program, excluded))
    context.tell(fmt::format(
        "warning: exclude_from_weight_decay has \"{}\", which is in the name of no parameter", entry));
}

// A static program has all its paths: nothing has to be looked for in each step, as in dynamic graphs.
void tell_unused_parameters(const Compilation& compilation) {
  const Program& program = compilation.training;
  std::set<ValueId> used;
  for (const ValueId gradient : compilation.gradients) used.insert(program.value(gradient).of);
  std::vector<std::string> unused;
  for (const ValueId parameter : program.of_kind(ValueKind::parameter))
    if (!used.contains(parameter)) unused.push_back(program.value(parameter).name);
  compilation.context.tell(
      unused.empty()
          ? fmt::format("find_unused_parameters: the loss depends on all {} parameters", used.size())
          : fmt::format(
                "find_unused_parameters: the loss does not depend on {} of {} parameters, which stay as they are: {}",
                unused.size(), unused.size() + used.size(), fmt::join(unused, ", ")));
}

}  // namespace

void cast_model(Compilation& compilation) {
  const job::AmpSpec& amp = compilation.context.strategy.amp_configs;
  const CastCounts counts =
      cast_forward(compilation.training, compilation.context.ops, amp, compilation.narrow);
  compilation.context.tell(fmt::format("amp: {} of {} ops compute in {}, {} casts; {}", counts.narrow,
                                       counts.ops, describe(compilation.narrow), counts.casts,
                                       describe_scaling(amp)));
}

void take_pixels(Compilation& compilation) {
  const job::DataSpec& data = compilation.job.data;
  feed_pixels(compilation.training, compilation.context.ops, data.train);
  if (!compilation.evaluation.ops.empty())
    feed_evaluation_pixels(compilation.evaluation, compilation.context.ops, data);
}

void append_gradients(Compilation& compilation) {
  Builder builder = training_builder(compilation);
  const job::StrategySpec& strategy = compilation.context.strategy;
  if (strategy.amp) {
    append_backward(builder, append_scaled_loss(builder, compilation.loss, strategy.amp_configs));
    compilation.gradients =
        append_gradient_casts(builder, strategy.amp_configs, gradient_use(compilation.context));
  } else {
    append_backward(builder, compilation.loss);
    compilation.gradients = compilation.training.of_kind(ValueKind::gradient);
  }
  if (strategy.find_unused_parameters) tell_unused_parameters(compilation);
  if (strategy.gradient_merge) merge_gradients(builder, strategy.gradient_merge_configs);
  if (strategy.fp16_allreduce && compilation.context.world_size > 1)
    compilation.gradients = narrow_gradients(builder, compilation.narrow);
}

void append_updates(Compilation& compilation) {
  Builder builder = training_builder(compilation);
  const job::OptimizerSpec optimizer = job::settle_optimizer(compilation.job);
  tell_optimizer(compilation, optimizer);
  append_clipping(builder, optimizer.gradient_clip, compilation.gradients,
                  gradient_use(compilation.context).zero_one_by_one);
  append_optimizer(builder, optimizer, compilation.gradients);
}

void evaluate_averages(Compilation& compilation) { read_averages(compilation.evaluation); }

void choose_algorithms(Compilation& compilation) {
  const Target& target = *compilation.target;
  std::vector<Program*> programs = {&compilation.training, &compilation.evaluation};
  if (has_smaller(compilation)) programs.push_back(&compilation.smaller);
  compilation.search =
      search_algorithms(programs, compilation.context.ops, target.device, target.communicator, target.search);
}

void place_in_layouts(Compilation& compilation) {
  Device& device = compilation.target->device;
  const OpTable& ops = compilation.context.ops;
  propagate_layouts(compilation.training, ops, device, {});
  propagate_layouts(compilation.evaluation, ops, device, parameter_layouts(compilation.training));
  if (!has_smaller(compilation)) return;
  propagate_layouts(compilation.smaller, ops, device, summed_layouts(compilation.training));
  check_same_collectives(compilation.training, compilation.smaller);
}

void gather_kept_values(Compilation& compilation) {
  Program& training = compilation.training;
  const int communicator = sharding_groups(compilation.context).inside;
  if (shards_parameters(compilation.context.strategy))
    for (Program* program : {&training, &compilation.smaller})
      gather_parameters(*program, owners_of_parameters(*program), communicator);
  std::map<ValueId, int> owners;  // of what evaluations read: parameters or their averages
  for (const ValueId id : compilation.evaluation.of_kind(ValueKind::parameter))
    if (const int owner = owner_of_user(training, training.find(compilation.evaluation.value(id).name));
        owner != kNone)
      owners[id] = owner;
  gather_parameters(compilation.evaluation, owners, communicator);
}

void cut_stages(Compilation& compilation) {
  assign_stages(compilation.training, compilation.context);
  assign_evaluation_stages(compilation.evaluation, compilation.training);
}

void keep_own_stage(Compilation& compilation) {
  const job::StrategySpec& strategy = compilation.context.strategy;
  const int stages = compilation.context.stages;
  const PipelinePlace place = {*compilation.rank % stages, stages};
  compilation.whole = std::move(compilation.training);
  compilation.training =
      stage_program(compilation.whole, {.place = place,
                                        .micro_batches = compilation.micro_batches,
                                        .schedule = strategy.pipeline_configs.schedule_mode});
  compilation.evaluation = evaluation_stage(compilation.evaluation, place);
  verify(compilation.evaluation, compilation.context.ops);
}

void keep_own_part(Compilation& compilation) {
  compilation.whole = compilation.training;
  const PassContext& context = compilation.context;
  const int place = *compilation.rank % sharding_groups(context).ranks;
  if (compilation.takes_smaller) compilation.training = compilation.smaller;
  keep_own_updates(compilation.training, place,
                   shards_gradients(context.strategy) ? OwnGradients::alone : OwnGradients::kept);
  keep_own_updates(compilation.evaluation, place);
  verify(compilation.evaluation, context.ops);
}

void join_launches(Compilation& compilation) {
  join_small_ops(compilation.training, compilation.context.ops);
}

}  // namespace fleetrun::runtime
