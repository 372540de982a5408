#include "runtime/compile/pipeline.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/assign_communicators.h"
#include "runtime/passes/auto_fusion.h"
#include "runtime/passes/backward_optimizer_deps.h"
#include "runtime/passes/coalesce_gradients.h"
#include "runtime/passes/fuse_all_reduce.h"
#include "runtime/passes/fuse_bn_act.h"
#include "runtime/passes/fuse_bn_add_act.h"
#include "runtime/passes/fuse_broadcasts.h"
#include "runtime/passes/fuse_elewise_add_act.h"
#include "runtime/passes/fuse_optimizers.h"
#include "runtime/passes/fuse_relu_depthwise_conv.h"
#include "runtime/passes/insert_all_reduce.h"
#include "runtime/passes/insert_reduce.h"
#include "runtime/passes/order_all_reduces.h"
#include "runtime/passes/recompute.h"
#include "runtime/passes/scale_loss_gradient.h"
#include "runtime/passes/sequential_execution.h"
#include "runtime/passes/sync_batch_norm.h"

namespace fleetrun::runtime {
namespace {

bool always(const PassContext&) { return true; }
bool has_other_ranks(const PassContext& context) { return context.world_size > 1; }

// Whether a switch of strategy.build_strategy is on.
template <bool job::BuildStrategySpec::*field>
bool on(const PassContext& context) {
  return context.strategy.build_strategy.*field;
}

bool wants_sync_batch_norm(const PassContext& context) {
  return context.strategy.sync_batch_norm && context.world_size > 1;
}

bool takes_the_mean(const PassContext& context) {
  return context.world_size > 1 &&
         context.strategy.build_strategy.gradient_scale_strategy == job::GradientScale::CoeffNumDevice;
}

bool reduces_to_owners(const PassContext& context) {
  return context.world_size > 1 &&
         context.strategy.build_strategy.reduce_strategy == job::ReduceStrategy::Reduce;
}

bool fuses_broadcasts(const PassContext& context) {
  return reduces_to_owners(context) && context.strategy.build_strategy.fuse_broadcast_ops;
}

bool reduces_to_all(const PassContext& context) {
  return context.world_size > 1 && !reduces_to_owners(context);
}

bool recomputes(const PassContext& context) { return context.strategy.recompute; }

bool fuses_all_reduce(const PassContext& context) {
  return reduces_to_all(context) && context.strategy.fuse_all_reduce_ops;
}

bool updates_come_last(const PassContext& context) {
  return context.world_size > 1 && context.strategy.build_strategy.enable_backward_optimizer_op_deps;
}

constexpr const char* kBuilt = "built";

struct Pass {
  const char* name;
  bool (*wanted)(const PassContext&);
  void (*run)(Program&, const PassContext&);
};

using Build = job::BuildStrategySpec;

// The order is PaddlePaddle's (build_strategy.cc), but for sequential_execution, which orders what the fusions leave.
constexpr std::array kPasses = {
    Pass{"sync_batch_norm", wants_sync_batch_norm, sync_batch_norm},  // before fusions look for batch_norm
    Pass{"fuse_relu_depthwise_conv", on<&Build::fuse_relu_depthwise_conv>,
         fuse_relu_depthwise_conv},  // before batch norms take the relus
    Pass{"fuse_bn_act", on<&Build::fuse_bn_act_ops>,
         fuse_bn_act},  // fusions: the ops of one device, before all others
    Pass{"fuse_bn_add_act", on<&Build::fuse_bn_add_act_ops>,
         fuse_bn_add_act},  // before others take the additions
    Pass{"auto_fusion", on<&Build::enable_auto_fusion>, auto_fusion},
    Pass{"fuse_elewise_add_act", on<&Build::fuse_elewise_add_act_ops>, fuse_elewise_add_act},
    Pass{"recompute", recomputes, recompute},  // of what fusions have left
    Pass{"coalesce_gradients", fuses_all_reduce, coalesce_gradients},
    Pass{"fuse_optimizers", on<&Build::fuse_all_optimizer_ops>, fuse_optimizers},
    Pass{"sequential_execution", on<&Build::enable_sequential_execution>,
         sequential_execution},  // before there are collectives, which may go on beside the rest
    Pass{"scale_loss_gradient", takes_the_mean, scale_loss_gradient},
    Pass{"insert_all_reduce", reduces_to_all, insert_all_reduce},  // needs every gradient to exist
    Pass{"insert_reduce", reduces_to_owners, insert_reduce},
    Pass{"fuse_broadcasts", fuses_broadcasts, fuse_broadcasts},
    Pass{"fuse_all_reduce", fuses_all_reduce, fuse_all_reduce},
    Pass{"order_all_reduces", has_other_ranks, order_all_reduces},
    Pass{"backward_optimizer_deps", updates_come_last, backward_optimizer_deps},
    Pass{"assign_communicators", always, assign_communicators},  // needs every collective in its place
};

}  // namespace

bool is_named_by_passes(std::string_view name) {
  return name == kBuilt ||
         std::any_of(kPasses.begin(), kPasses.end(), [name](const Pass& pass) { return name == pass.name; });
}

void run_passes(Program& program, const PassContext& context, const PassWatcher& watcher) {
  if (watcher) watcher(kBuilt, program);
  for (const Pass& pass : kPasses) {
    if (!pass.wanted(context)) continue;
    with_context(fmt::format("running the pass {}", pass.name), [&] {
      pass.run(program, context);
      verify(program, context.ops);
    });
    if (watcher) watcher(pass.name, program);
  }
}

}  // namespace fleetrun::runtime
