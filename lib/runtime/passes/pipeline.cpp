#include "runtime/passes/pipeline.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/graph/verify.h"
#include "runtime/passes/assign_communicators.h"
#include "runtime/passes/auto_fusion.h"
#include "runtime/passes/fuse_bn_act.h"
#include "runtime/passes/fuse_bn_add_act.h"
#include "runtime/passes/fuse_elewise_add_act.h"
#include "runtime/passes/insert_all_reduce.h"
#include "runtime/passes/sync_batch_norm.h"

namespace fleetrun::runtime {
namespace {

bool always(const PassContext&) { return true; }
bool several_ranks(const PassContext& context) { return context.world_size > 1; }

// Whether a switch of strategy.build_strategy is on.
template <bool job::BuildStrategySpec::*field>
bool on(const PassContext& context) {
  return context.strategy.build_strategy.*field;
}

bool wants_sync_batch_norm(const PassContext& context) {
  return context.strategy.sync_batch_norm && context.world_size > 1;
}

struct Pass {
  const char* name;
  bool (*wanted)(const PassContext&);
  void (*run)(Program&, const PassContext&);
};

using Build = job::BuildStrategySpec;

constexpr std::array kPasses = {
    Pass{"sync_batch_norm", wants_sync_batch_norm, sync_batch_norm},  // before fusions look for batch_norm
    Pass{"fuse_bn_act", on<&Build::fuse_bn_act_ops>,
         fuse_bn_act},  // fusions: the ops of one device, before all others
    Pass{"fuse_bn_add_act", on<&Build::fuse_bn_add_act_ops>,
         fuse_bn_add_act},  // before others take the additions
    Pass{"auto_fusion", on<&Build::enable_auto_fusion>, auto_fusion},
    Pass{"fuse_elewise_add_act", on<&Build::fuse_elewise_add_act_ops>, fuse_elewise_add_act},
    Pass{"insert_all_reduce", several_ranks, insert_all_reduce},  // needs every gradient to exist
    Pass{"assign_communicators", always, assign_communicators},   // needs every collective in its place
};

}  // namespace

void run_passes(Program& program, const PassContext& context, const PassWatcher& watcher) {
  if (watcher) watcher("built", program);
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
