#include "runtime/training/setup/data_sets.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "job/spec/data_set_facts.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/step_share.h"
#include "runtime/data/split.h"

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

void note_ignored(std::string_view key, const DataSet& set, std::vector<std::string>& notes) {
  if (const std::string told = describe(set.ignored()); !told.empty())
    notes.push_back(fmt::format("{}: {}", key, told));
}

// Whether every sample of the test is one of the training's.
bool is_trained_on(const DataSet& test, const DataSet& train) {
  const int last = test.size() - 1;
  return last < train.size() && test.describe(0) == train.describe(0) &&
         test.describe(last) == train.describe(last);
}

}  // namespace

LoaderOptions evaluation_loader(const job::JobSpec& job, const RankEnv& env) {
  LoaderOptions options = of_rank(make_loader_options(job.data, *job::evaluated_set(job.data)), job, env);
  options.evaluation = true;
  options.batch =
      job::plan_shares(job, env.world_size).largest();  // the evaluation program is the same on every rank
  return options;
}

DataSets::DataSets(const job::DataSpec& spec, std::int64_t seed) : train(open_data_set(spec.train)) {
  note_ignored("data.train", *train, notes);
  if (spec.split) {
    SplitSet parts = split_data_set(std::move(train), *spec.split, seed);
    train = std::move(parts.train);
    test = std::move(parts.test);
    split = make_split_facts(*spec.split, seed, *train, *test);
    notes.push_back(fmt::format("data.split: {} to train on, {} to evaluate on",
                                plural(train->size(), "sample"), test->size()));
  }
  if (!spec.test) return;
  test = open_test_set(*spec.test, train->class_names());
  note_ignored("data.test", *test, notes);
  check_same_kind(*train, *test);
  if (const std::string note = note_unnamed_classes(*test, train->class_names(), train->classes());
      !note.empty())
    notes.push_back(note);
  if (is_trained_on(*test, *train))
    notes.emplace_back(
        "warning: data.test has samples of data.train: the test's score says nothing about new samples");
}

DataSets::DataSets(const job::DataSetSpec& test_spec, const std::vector<std::string>& classes)
    : test(open_test_set(test_spec, classes)) {}

Loaders::Loaders(const DataSets& sets, const job::JobSpec& job, const RankEnv& env, Timeline* timeline)
    : train(*sets.train, training_loader(job, env, timeline)) {
  if (sets.test) test = std::make_unique<Loader>(*sets.test, evaluation_loader(job, env));
}

}  // namespace fleetrun::runtime
