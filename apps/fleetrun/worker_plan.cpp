#include "worker_plan.h"

#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/plan_request.h"
#include "base/system/standard_output.h"
#include "job/parse_job.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/settle_strategy.h"
#include "job/spec/step_share.h"
#include "runtime/compile/build_program.h"
#include "runtime/passes/shared/owners.h"
#include "runtime/plan/layouts.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun {
namespace {

using Words = std::vector<std::string>;
using Ranks = std::vector<int>;

// The job, changed so that its ranks have the layout. `batch`: data.batch_size of a rank. A pipeline of p ranks trains p times as many
// samples in a step. A job with train.global_batch has no such batch and keeps its key, which pipelines refuse.
job::JobSpec job_with(const runtime::RankLayout& layout, std::optional<int> batch, const Words& words,
                      const PlanRequest& request) {
  Words changes(words.begin() + 1, words.end());
  const auto change = [&](const char* key, const auto& value) {
    changes.push_back(fmt::format("{}={}", key, value));
  };
  change("strategy.sharding", layout.sharding > 0);
  if (layout.sharding > 0) {
    change("strategy.sharding_configs.stage", layout.sharding);
    change("strategy.sharding_configs.sharding_degree", layout.set);
    change("strategy.sharding_configs.dp_degree", "null");
  }
  change("strategy.pipeline", layout.pipeline > 1);
  change("strategy.hybrid_configs.pp_degree", layout.pipeline);
  if (layout.pipeline > 1) {
    if (batch) change("data.batch_size", *batch * layout.pipeline);
    change("strategy.pipeline_configs.micro_batch_size", "null");
    change("strategy.pipeline_configs.accumulate_steps", "null");
  }
  job::JobSpec job = job::parse_job_file(words.front(), changes).spec;
  const bool on_gpus = layout.pipeline == 1;  // the rows of pipelines are for CPUs, and describe() says so
  job.strategy =
      job::settle_strategy(job.strategy, {request.hosts * request.gpus, request.gpus, on_gpus}).strategy;
  return job;
}

// gradient_merge and localsgd let the ranks communicate in each k-th step only.
double steps_per_sum(const job::StrategySpec& strategy) {
  if (strategy.gradient_merge) return strategy.gradient_merge_configs.k_steps;
  return strategy.localsgd ? strategy.localsgd_configs.k_steps : 1;
}

// Returns one rank of each stage of a pipeline. Without a pipeline it returns the rank that owns the most parameters.
Ranks ranks_to_ask(const job::JobSpec& job, const runtime::ModelFacts& facts,
                   const runtime::RankLayout& layout) {
  Ranks ranks(static_cast<std::size_t>(layout.pipeline), 0);
  std::iota(ranks.begin(), ranks.end(), 0);
  if (layout.pipeline > 1) return ranks;
  const int sharing = layout.sharding > 0 ? layout.set : layout.data_parallel;
  const runtime::Program whole =
      runtime::build_training_program(job, facts, runtime::all_ops(), {.world_size = layout.data_parallel});
  return {
      runtime::owner_of_most(runtime::elements_of(whole, runtime::parameters_by_gradient(whole)), sharing)};
}

runtime::LayoutCosts costs_of(const job::JobSpec& job, const runtime::ModelFacts& facts,
                              const runtime::RankLayout& layout) {
  runtime::LayoutCosts costs = {.steps_per_sum = steps_per_sum(job.strategy),
                                .batches_in_memory = job.data.prefetch + 1.0};
  if (layout.pipeline > 1) costs.micro_batches = job::micro_batches_of(job, layout.pipeline).count;
  const int ranks = layout.data_parallel * layout.pipeline;
  for (const int rank : ranks_to_ask(job, facts, layout))
    costs.stages.push_back(runtime::step_costs(
        runtime::build_part_of_rank(job, facts, runtime::all_ops(), {.world_size = ranks}, rank),
        runtime::all_ops()));
  return costs;
}

}  // namespace

void run_plan(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) throw Error(ErrorKind::usage, "wanted fleetrun-worker --plan REQUEST JOB.json");
  const PlanRequest request = parse_plan_request(arguments[0]);
  const Words words(arguments.begin() + 1, arguments.end());
  const int ranks = request.hosts * request.gpus;
  const runtime::RankLayout plain = {.data_parallel = ranks};  // the others are compared with it
  const job::JobSpec job = job_with(plain, std::nullopt, words, request);
  const runtime::ModelFacts facts = runtime::resolve_model_facts(job);
  const runtime::Program whole =
      runtime::build_training_program(job, facts, runtime::all_ops(), {.world_size = ranks});
  const double gradient_bytes = runtime::step_costs(whole, runtime::all_ops()).gradient_bytes;
  const std::optional<int> batch =
      job.train.global_batch ? std::nullopt : std::optional<int>(job.data.batch_size);
  // Asks the rules for jobs and the passes that build a program: they refuse what a training cannot have.
  const auto costs = [&](const runtime::RankLayout& layout) -> std::optional<runtime::LayoutCosts> {
    try {
      runtime::LayoutCosts found = costs_of(job_with(layout, batch, words, request), facts, layout);
      found.gradient_bytes = gradient_bytes;
      return found;
    } catch (const Error& problem) {
      if (problem.kind() != ErrorKind::config) throw;
      return std::nullopt;
    }
  };
  print_answer(describe(runtime::plan_layouts(job::plan_shares(job, ranks), request, costs), request));
}

}  // namespace fleetrun
