#include "job/checks/check_pipeline.h"

#include <fmt/format.h>

namespace fleetrun::job {
namespace {

constexpr const char* kMicroBatch = "strategy.pipeline_configs.micro_batch_size";
constexpr const char* kSteps = "strategy.pipeline_configs.accumulate_steps";

void refuse(bool on, const char* key, const char* wanted, Draft& draft) {
  if (on) draft.report(key, fmt::format("true beside strategy.pipeline, wanted {}", wanted));
}

void check_strategies(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  refuse(
      strategy.gradient_merge, "strategy.gradient_merge",
      "false: a larger strategy.pipeline_configs.accumulate_steps merges the gradients of more micro-batches",
      draft);
  refuse(strategy.fp16_allreduce, "strategy.fp16_allreduce",
         "false: the ranks have different layers, so they sum no gradients", draft);
  refuse(
      strategy.sync_batch_norm, "strategy.sync_batch_norm",
      "false: a batch norm is on one rank; a larger strategy.pipeline_configs.micro_batch_size gives it more samples",
      draft);
  refuse(strategy.amp, "strategy.amp", "false: the stages compute in f32", draft);
  const char* const apart = "one of the two: the ranks have different layers";
  refuse(strategy.sharding, "strategy.sharding", apart, draft);
  refuse(strategy.localsgd, "strategy.localsgd", apart, draft);
  refuse(strategy.adaptive_localsgd, "strategy.adaptive_localsgd", apart, draft);
  refuse(strategy.dgc, "strategy.dgc", apart, draft);
  if (strategy.build_strategy.reduce_strategy == ReduceStrategy::Reduce)
    draft.report("strategy.build_strategy.reduce_strategy",
                 "Reduce beside strategy.pipeline, wanted AllReduce: each parameter is on one rank already");
}

// Keys outside of strategy that a pipeline does not support.
void check_other_sections(Draft& draft) {
  if (draft.spec.train.global_batch)
    draft.report(
        "train.global_batch",
        fmt::format(
            "{} beside strategy.pipeline, wanted data.batch_size, which is the batch of a whole pipeline there",
            *draft.spec.train.global_batch));
  if (!draft.spec.model.freeze.empty())
    draft.report("model.freeze",
                 "a list beside strategy.pipeline, wanted []: every stage has layers that are trained");
}

void check_micro_batches(Draft& draft) {
  const auto& [size, steps, schedule, cache, partial] = draft.spec.strategy.pipeline_configs;
  const int batch = draft.spec.data.batch_size;
  if (draft.has_problem("data.batch_size")) return;
  if (size && steps && std::int64_t{*size} * *steps != batch)
    draft.report(kMicroBatch,
                 fmt::format("{} times accumulate_steps {}, wanted a product of {}, which is data.batch_size",
                             *size, *steps, batch));
  else if (size && batch % *size != 0)
    draft.report(kMicroBatch,
                 fmt::format("{}, wanted a divisor of data.batch_size, which is {}", *size, batch));
  else if (steps && batch % *steps != 0)
    draft.report(kSteps, fmt::format("{}, wanted a divisor of data.batch_size, which is {}", *steps, batch));
}

}  // namespace

void check_pipeline(Draft& draft) {
  const StrategySpec& strategy = draft.spec.strategy;
  if (const int stages = strategy.hybrid_configs.pp_degree.value_or(1); stages > 1 && !strategy.pipeline)
    draft.report("strategy.hybrid_configs.pp_degree",
                 fmt::format("{} without strategy.pipeline, wanted 1, or strategy.pipeline true", stages));
  if (!strategy.pipeline) return;
  check_strategies(draft);
  check_other_sections(draft);
  check_micro_batches(draft);
}

}  // namespace fleetrun::job
