#include "runtime/compile/pipeline.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "runtime/compile/compile_passes.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

bool always(const Compilation&) { return true; }

// Whether a switch of strategy.build_strategy is on.
template <bool job::BuildStrategySpec::*field>
bool on(const Compilation& compilation) {
  return compilation.context.strategy.build_strategy.*field;
}

bool has_other_ranks(const Compilation& compilation) { return compilation.context.world_size > 1; }

bool wants_amp(const Compilation& compilation) { return compilation.context.strategy.amp; }

bool feeds_pixels(const Compilation& compilation) { return compilation.feeds == ImageForm::pixels; }

bool wants_sync_batch_norm(const Compilation& compilation) {
  return compilation.context.strategy.sync_batch_norm && has_other_ranks(compilation);
}

// Between two averages of their parameters, the ranks train by themselves.
bool trains_locally(const Compilation& compilation) {
  const job::StrategySpec& strategy = compilation.context.strategy;
  return has_other_ranks(compilation) && (strategy.localsgd || strategy.adaptive_localsgd);
}

bool sums_gradients(const Compilation& compilation) {
  return has_other_ranks(compilation) && !trains_locally(compilation);
}

bool compresses_gradients(const Compilation& compilation) {
  return has_other_ranks(compilation) && compilation.context.strategy.dgc;
}

bool takes_the_mean(const Compilation& compilation) {
  return sums_gradients(compilation) && compilation.context.strategy.build_strategy.gradient_scale_strategy ==
                                            job::GradientScale::CoeffNumDevice;
}

bool reduces_to_owners(const Compilation& compilation) {
  return sums_gradients(compilation) &&
         compilation.context.strategy.build_strategy.reduce_strategy == job::ReduceStrategy::Reduce;
}

bool fuses_broadcasts(const Compilation& compilation) {
  return reduces_to_owners(compilation) && on<&job::BuildStrategySpec::fuse_broadcast_ops>(compilation);
}

bool shards(const Compilation& compilation) {
  return has_other_ranks(compilation) && compilation.context.strategy.sharding;
}

bool reduces_to_all(const Compilation& compilation) {
  return sums_gradients(compilation) && !reduces_to_owners(compilation);
}

bool recomputes(const Compilation& compilation) { return compilation.context.strategy.recompute; }

bool fuses_all_reduce(const Compilation& compilation) {
  return reduces_to_all(compilation) && compilation.context.strategy.fuse_all_reduce_ops;
}

bool updates_come_last(const Compilation& compilation) {
  return has_other_ranks(compilation) &&
         on<&job::BuildStrategySpec::enable_backward_optimizer_op_deps>(compilation);
}

bool merges_gradients(const Compilation& compilation) { return compilation.context.strategy.gradient_merge; }

bool has_stages(const Compilation& compilation) { return compilation.context.strategy.pipeline; }

bool has_no_stages(const Compilation& compilation) { return !has_stages(compilation); }

bool wants_averages(const Compilation& compilation) { return compilation.job.optimizer.ema_evaluate; }

struct Pass {
  const char* name;
  bool (*wanted)(const Compilation&);
  void (*run)(Compilation&);
};

// A pass of the strategy is a function of the training program alone.
template <void (*pass)(Program&, const PassContext&)>
void training(Compilation& compilation) {
  pass(compilation.training, compilation.context);
}

using Build = job::BuildStrategySpec;

// 1. From the model and its loss to a program that trains.
constexpr std::array kBuilding = {
    Pass{"cast_forward", wants_amp, cast_model},  // before the backward part, which follows the casts back
    Pass{"feed_pixels", feeds_pixels,
         take_pixels},  // after the casts, because it replaces the cast of the image
    Pass{"append_backward", always, append_gradients},
    Pass{"append_optimizer", always, append_updates},
};

// 2. What the strategy asks for. The order is PaddlePaddle's (build_strategy.cc), but for sequential_execution, which orders
// what the fusions leave. --dump_passes shows the program before these and after each.
constexpr const char* kBuilt = "built";
constexpr std::array kStrategy = {
    // Before fusions look for batch_norm.
    Pass{"sync_batch_norm", wants_sync_batch_norm, training<sync_batch_norm>},
    // Before batch norms take the relus.
    Pass{"fuse_relu_depthwise_conv", on<&Build::fuse_relu_depthwise_conv>,
         training<fuse_relu_depthwise_conv>},
    // Fusions: the ops of one device, before all others.
    Pass{"fuse_bn_act", on<&Build::fuse_bn_act_ops>, training<fuse_bn_act>},
    // Before others take the additions.
    Pass{"fuse_bn_add_act", on<&Build::fuse_bn_add_act_ops>, training<fuse_bn_add_act>},
    Pass{"auto_fusion", on<&Build::enable_auto_fusion>, training<auto_fusion>},
    Pass{"fuse_elewise_add_act", on<&Build::fuse_elewise_add_act_ops>, training<fuse_elewise_add_act>},
    // Of what fusions have left. First the stages, because an op is run again by its own stage.
    Pass{"cut_forward", has_stages, training<cut_forward>},
    Pass{"recompute", recomputes, training<recompute>},
    // Before others look for gradients to sum.
    Pass{"sparse_gradients", compresses_gradients, training<sparse_gradients>},
    Pass{"coalesce_gradients", fuses_all_reduce, training<coalesce_gradients>},
    Pass{"fuse_optimizers", on<&Build::fuse_all_optimizer_ops>, training<fuse_optimizers>},
    // Before there are collectives, which may go on beside the rest.
    Pass{"sequential_execution", on<&Build::enable_sequential_execution>, training<sequential_execution>},
    Pass{"scale_loss_gradient", takes_the_mean, training<scale_loss_gradient>},
    // Needs every gradient to exist.
    Pass{"insert_all_reduce", reduces_to_all, training<insert_all_reduce>},
    Pass{"insert_reduce", reduces_to_owners, training<insert_reduce>},
    Pass{"divide_averages", shards, training<divide_averages>},  // needs the owners of updates
    Pass{"fuse_broadcasts", fuses_broadcasts, training<fuse_broadcasts>},
    Pass{"fuse_all_reduce", fuses_all_reduce, training<fuse_all_reduce>},
    Pass{"order_all_reduces", has_other_ranks, training<order_all_reduces>},
    // After all updates.
    Pass{"average_parameters", trains_locally, training<average_parameters>},
    Pass{"backward_optimizer_deps", updates_come_last, training<backward_optimizer_deps>},
    // Needs every collective in its place.
    Pass{"assign_communicators", always, training<assign_communicators>},
    // Needs every op of the optimizer and every collective.
    Pass{"update_every_k_steps", merges_gradients, training<update_every_k_steps>},
};

// 3. For the device, with a target: both programs, since they share parameters.
constexpr std::array kPlacing = {
    Pass{"search_algorithms", always, choose_algorithms},  // before layouts, which follow the algorithm
    Pass{"propagate_layouts", always, place_in_layouts},
};

// 4. From the programs of all ranks to those of one.
constexpr std::array kDividing = {
    Pass{"evaluate_averages", wants_averages,
         evaluate_averages},  // after layouts, which find parameters by their names
    Pass{"gather_parameters", shards,
         gather_kept_values},  // after all that give values their layouts and names
    Pass{"assign_stages", has_stages,
         cut_stages},  // after the layouts, so that stages agree on those of what they send
    // Last: until here all ranks have the same program.
    Pass{"keep_own_stage", has_stages, keep_own_stage},
    Pass{"keep_own_updates", has_no_stages, keep_own_part},
};

// 5. For a device that starts its kernels one by one. In a pipeline, the casts of all micro-batches would become one. With recompute, which wants
// to free the copies of parameters, sequential_execution keeps the casts apart.
constexpr std::array kStarting = {
    Pass{"join_launches", has_no_stages, join_launches},
};

bool starts_kernels(const Compilation& compilation) {
  return compilation.target != nullptr && compilation.target->device.streams() != nullptr;
}

void run(const Pass& pass, Compilation& compilation) {
  pass.run(compilation);
  verify(compilation.training, compilation.context.ops);
}

template <typename Passes>
void run_wanted(const Passes& passes, Compilation& compilation) {
  for (const Pass& pass : passes)
    if (pass.wanted(compilation)) run(pass, compilation);
}

// Says which ops of the job this device lacks.
void check_device(const Compilation& compilation) {
  std::set<std::string> missing;
  for (const Op& op : compilation.training.ops)
    if (!compilation.context.device_has(op.type)) missing.insert(op.type);
  if (missing.empty()) return;
  throw Error(ErrorKind::config,
              fmt::format("this device has no kernels in this build for ops of the job: {}",
                          fmt::join(missing, ", ")),
              "--device=cpu has kernels for all ops; docs/strategies.md says which keys need them");
}

void run_strategy(Compilation& compilation, const PassWatcher& watcher) {
  if (watcher) watcher(kBuilt, compilation.training);
  for (const Pass& pass : kStrategy) {
    if (!pass.wanted(compilation)) continue;
    with_context(fmt::format("running the pass {}", pass.name), [&] { run(pass, compilation); });
    if (watcher) watcher(pass.name, compilation.training);
  }
}

}  // namespace

bool is_named_by_passes(std::string_view name) {
  return name == kBuilt || std::any_of(kStrategy.begin(), kStrategy.end(),
                                       [name](const Pass& pass) { return name == pass.name; });
}

void run_passes(Compilation& compilation, const PassWatcher& watcher) {
  run_wanted(kBuilding, compilation);
  run_strategy(compilation, watcher);
  check_device(compilation);
  if (compilation.target != nullptr) run_wanted(kPlacing, compilation);
  if (compilation.rank) run_wanted(kDividing, compilation);
  if (starts_kernels(compilation)) run_wanted(kStarting, compilation);
}

}  // namespace fleetrun::runtime
