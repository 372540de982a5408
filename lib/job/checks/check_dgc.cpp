#include "job/checks/check_dgc.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "job/keys/job_keys.h"

namespace fleetrun::job {
namespace {

// The ranks send momentum.
void check_sparse_update(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  if (strategy.lars || strategy.lamb)
    return draft.report(
        "strategy.dgc",
        fmt::format("true beside strategy.{0}, wanted strategy.{0} false and optimizer.name \"momentum\"",
                    strategy.lars ? "lars" : "lamb"));
  if (draft.spec.optimizer.name != OptimizerName::momentum && !draft.has_problem("optimizer.name"))
    draft.report("strategy.dgc",
                 fmt::format("true beside optimizer.name \"{}\", wanted optimizer.name \"momentum\"",
                             value_text(draft.spec, "optimizer.name")));
}

// What else changes the gradients that are summed.
void check_sparse_sums(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  const auto refuse = [&](const char* key, const char* wanted) {
    draft.report(std::string("strategy.") + key, fmt::format("true beside strategy.dgc, wanted {}", wanted));
  };
  if (strategy.amp) refuse("amp", "one of the two: dgc sends f32");
  if (strategy.fp16_allreduce) refuse("fp16_allreduce", "false: dgc sends f32");
  if (strategy.gradient_merge)
    refuse("gradient_merge", "one of the two: dgc keeps gradients for later steps itself");
  if (strategy.sharding) refuse("sharding", "one of the two: each rank updates all parameters");
  if (strategy.build_strategy.reduce_strategy == ReduceStrategy::Reduce)
    draft.report("strategy.build_strategy.reduce_strategy",
                 "\"Reduce\" beside strategy.dgc, wanted \"AllReduce\": each rank updates all parameters");
}

void check_local_clipping(Draft& draft) {
  const ClipBy by = draft.spec.optimizer.gradient_clip.by;
  if (by == ClipBy::none || by == ClipBy::norm || draft.has_problem("optimizer.gradient_clip.by")) return;
  draft.report(
      "optimizer.gradient_clip.by",
      fmt::format(
          "\"{}\" beside strategy.dgc, wanted \"norm\" or \"none\": each rank clips its own gradients",
          value_text(draft.spec, "optimizer.gradient_clip.by")));
}

}  // namespace

void check_dgc(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  if (!strategy.dgc) return;
  if (strategy.localsgd || strategy.adaptive_localsgd)
    return draft.report("strategy.dgc", fmt::format("true beside strategy.{}, wanted one of the two",
                                                    strategy.localsgd ? "localsgd" : "adaptive_localsgd"));
  check_sparse_update(draft);
  check_sparse_sums(draft);
  check_local_clipping(draft);
}

}  // namespace fleetrun::job
