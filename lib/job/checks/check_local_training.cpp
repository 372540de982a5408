#include "job/checks/check_local_training.h"

#include <string>

#include <fmt/format.h>

#include "job/keys/job_keys.h"

namespace fleetrun::job {
namespace {

// The mean of the ranks' parameters follows the training on all batches where an update is linear in the gradient.
void check_local_update(const std::string& strategy, Draft& draft) {
  const std::string path = "strategy." + strategy;
  for (const auto& [name, on] :
       {std::pair("lars", draft.spec.strategy.lars), {"lamb", draft.spec.strategy.lamb}})
    if (on)
      return draft.report(
          path,
          fmt::format("true beside strategy.{0}, wanted strategy.{0} false and optimizer.name \"momentum\" "
                      "or \"sgd\"",
                      name));
  const OptimizerName optimizer = draft.spec.optimizer.name;
  if (optimizer == OptimizerName::momentum || optimizer == OptimizerName::sgd ||
      draft.has_problem("optimizer.name"))
    return;
  draft.report(path,
               fmt::format("true beside optimizer.name \"{}\", wanted optimizer.name \"momentum\" or \"sgd\"",
                           value_text(draft.spec, "optimizer.name")));
}

// What changes how gradients are summed has nothing to change.
void check_local_sums(const std::string& strategy, Draft& draft) {
  const StrategySpec& spec = draft.spec.strategy;
  const auto refuse = [&](const char* key, const std::string& wanted) {
    draft.report(std::string("strategy.") + key,
                 fmt::format("true beside strategy.{}, wanted {}", strategy, wanted));
  };
  if (spec.fp16_allreduce) refuse("fp16_allreduce", fmt::format("false: {} sums no gradients", strategy));
  if (spec.gradient_merge) refuse("gradient_merge", "one of the two: both communicate once in k_steps steps");
  if (spec.sharding) refuse("sharding", "one of the two: each rank updates all parameters");
  if (spec.build_strategy.reduce_strategy == ReduceStrategy::Reduce)
    draft.report(
        "strategy.build_strategy.reduce_strategy",
        fmt::format("\"Reduce\" beside strategy.{}, wanted \"AllReduce\": each rank updates all parameters",
                    strategy));
}

}  // namespace

void check_local_training(Draft& draft) {
  const StrategySpec& spec = draft.spec.strategy;
  if (!spec.localsgd && !spec.adaptive_localsgd) return;
  if (spec.localsgd && spec.adaptive_localsgd)
    return draft.report(
        "strategy.adaptive_localsgd",
        "true beside strategy.localsgd, wanted one of the two: localsgd for a fixed number of steps");
  const std::string strategy = spec.localsgd ? "localsgd" : "adaptive_localsgd";
  check_local_update(strategy, draft);
  check_local_sums(strategy, draft);
}

}  // namespace fleetrun::job
