#include "job/checks/check_optimizer.h"

#include <fmt/format.h>

#include "job/keys/job_keys.h"
#include "job/spec/settle_optimizer.h"

namespace fleetrun::job {
namespace {

// A strategy that stands for another optimizer.
struct Replacement {
  const char* key;        // "lars"
  const char* base;       // the optimizer that it replaces
  const char* has_decay;  // the key of its own weight decay
  const char* has_exclude;
};

// What the optimizer's own keys say beside the strategy's.
void check_decay(const Replacement& strategy, Draft& draft) {
  const OptimizerSpec& optimizer = draft.spec.optimizer;
  if (optimizer.weight_decay > 0)
    draft.report("optimizer.weight_decay",
                 fmt::format("{} beside strategy.{}, wanted 0: {} is the decay", optimizer.weight_decay,
                             strategy.key, strategy.has_decay));
  if (!optimizer.exclude_from_weight_decay.empty())
    draft.report("optimizer.exclude_from_weight_decay",
                 fmt::format("a list of {} beside strategy.{}, wanted an empty one: {} is the list",
                             optimizer.exclude_from_weight_decay.size(), strategy.key, strategy.has_exclude));
}

void check_replacement(const Replacement& strategy, bool on, Draft& draft) {
  if (!on || draft.has_problem("optimizer.name")) return;
  const std::string name = value_text(draft.spec, "optimizer.name");
  if (name == strategy.base) return check_decay(strategy, draft);
  const std::string hint =
      name == strategy.key
          ? fmt::format("; without strategy.{}, optimizer.name \"{}\" does the same", name, name)
          : "";
  draft.report(fmt::format("strategy.{}", strategy.key),
               fmt::format("true beside optimizer.name \"{}\", wanted optimizer.name \"{}\"{}", name,
                           strategy.base, hint));
}

void check_replacements(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  if (strategy.lars && strategy.lamb)
    return draft.report("strategy.lamb",
                        "true beside strategy.lars, wanted one of the two: lars for optimizer.name "
                        "\"momentum\", lamb for \"adam\"");
  check_replacement({"lars", "momentum", "strategy.lars_configs.lars_weight_decay",
                     "strategy.lars_configs.exclude_from_weight_decay"},
                    strategy.lars, draft);
  check_replacement({"lamb", "adam", "strategy.lamb_configs.lamb_weight_decay",
                     "strategy.lamb_configs.exclude_from_weight_decay"},
                    strategy.lamb, draft);
  if (strategy.lars && draft.spec.optimizer.use_nesterov)
    draft.report("optimizer.use_nesterov", "true beside strategy.lars, wanted false: LARS has no such form");
}

// LARS takes the learning rate itself for parameters that do not decay (lib/runtime/ops/lars.cpp).
void check_lars(Draft& draft) {
  const OptimizerSpec used = settle_optimizer(draft.spec);
  const std::string key =
      draft.spec.strategy.lars ? "strategy.lars_configs.lars_weight_decay" : "optimizer.weight_decay";
  if (used.name != OptimizerName::lars || used.weight_decay > 0 || draft.has_problem(key)) return;
  draft.notes.push_back(fmt::format(
      "{} is 0: LARS then updates the parameters as momentum does, and lars_coeff has no effect", key));
}

void check_merging(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  const int steps = strategy.gradient_merge_configs.k_steps;
  if (!strategy.gradient_merge) return;
  if (steps == 1)
    draft.notes.push_back("strategy.gradient_merge has no effect: gradient_merge_configs.k_steps is 1");
  const auto& max_steps = draft.spec.train.max_steps;
  if (max_steps && *max_steps < steps && !draft.spec.checkpoint.dir)
    return draft.report(
        "strategy.gradient_merge_configs.k_steps",
        fmt::format("{} beside train.max_steps {}, wanted at most {}: no step would update the "
                    "parameters, and no checkpoint keeps their gradients",
                    steps, *max_steps, *max_steps));
  if (max_steps && *max_steps % steps != 0)
    draft.notes.push_back(fmt::format(
        "strategy.gradient_merge: train.max_steps is {}, no multiple of k_steps, which is {}: the last {} steps update nothing",
        *max_steps, steps, *max_steps % steps));
}

// Without a second copy there is nothing to compare.
void check_sharding(Draft& draft) {
  const JobSpec& spec = draft.spec;
  if (!spec.strategy.sharding || spec.strategy.sharding_configs.stage != 3) return;
  if (spec.train.check_weights_every > 0)
    draft.report(
        "train.check_weights_every",
        fmt::format(
            "{} beside strategy.sharding_configs.stage 3, wanted 0: a rank has only its own parameters; stage 2 keeps all of them on each rank",
            spec.train.check_weights_every));
}

}  // namespace

void check_optimizer(Draft& draft) {
  check_replacements(draft);
  check_lars(draft);
  check_merging(draft);
  check_sharding(draft);
  const OptimizerSpec& optimizer = draft.spec.optimizer;
  if (optimizer.ema_evaluate && optimizer.ema_decay == 0 && !draft.has_problem("optimizer.ema_decay"))
    draft.report("optimizer.ema_evaluate", "true, wanted optimizer.ema_decay above 0, which is 0");
  if (draft.spec.strategy.fp16_allreduce && draft.spec.strategy.amp)
    draft.report("strategy.fp16_allreduce",
                 "true beside strategy.amp, wanted false: amp sums the gradients in half precision already");
}

}  // namespace fleetrun::job
