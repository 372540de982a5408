#include "runtime/training/data_sets.h"

#include "job/settle_pipeline.h"
#include "job/step_share.h"

namespace fleetrun::runtime {
namespace {

// The ranks of a pipeline work on the same samples. Only its first stage reads images, and finds bad ones; where these are skipped, all
// ranks must find them.
LoaderOptions of_rank(LoaderOptions options, const job::JobSpec& job, const RankEnv& env) {
  options.world = job::replicas_of(job, env.world_size);
  const int stages = job::stages_of(job.strategy, env.world_size);
  options.rank = env.rank / stages;
  const bool is_later_stage = env.rank % stages > 0;
  options.images = !is_later_stage || job.data.bad_sample == job::BadSample::skip;
  return options;
}

LoaderOptions training_loader(const job::JobSpec& job, const RankEnv& env, Timeline* timeline) {
  LoaderOptions options = of_rank(make_loader_options(job.data, job.data.train), job, env);
  options.global_batch = job.train.global_batch.value_or(0);
  options.seed = job.train.seed;
  options.timeline = timeline;
  return options;
}

LoaderOptions evaluation_loader(const job::JobSpec& job, const RankEnv& env) {
  LoaderOptions options = of_rank(make_loader_options(job.data, *job.data.test), job, env);
  options.evaluation = true;
  options.batch =
      job::plan_shares(job, env.world_size).largest();  // the evaluation program is the same on every rank
  return options;
}

}  // namespace

DataSets::DataSets(const job::DataSpec& spec) : train(open_data_set(spec.train)) {
  if (!spec.test) return;
  test = open_data_set(*spec.test, train.get());
  check_same_kind(*train, *test);
}

Loaders::Loaders(const DataSets& sets, const job::JobSpec& job, const RankEnv& env, Timeline* timeline)
    : train(*sets.train, training_loader(job, env, timeline)) {
  if (sets.test) test = std::make_unique<Loader>(*sets.test, evaluation_loader(job, env));
}

}  // namespace fleetrun::runtime
