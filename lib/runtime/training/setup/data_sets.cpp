#include "runtime/training/setup/data_sets.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "job/spec/data_set_facts.h"
#include "job/spec/settle_pipeline.h"
#include "job/spec/step_share.h"
#include "runtime/data/formats/class_names.h"
#include "runtime/data/same_files.h"
#include "runtime/data/split.h"
#include "runtime/training/setup/compute_options.h"

namespace fleetrun::runtime {
namespace {

// The ranks of a pipeline work on the same samples. Only its first stage reads images, and finds bad ones; where these are skipped, all
// ranks must find them.
LoaderOptions of_rank(const job::DataSetSpec& set, const job::JobSpec& job, const RankEnv& env,
                      Device& device) {
  LoaderOptions options = make_loader_options(job.data, set);
  options.world = job::replicas_of(job, env.world_size);
  const int stages = job::stages_of(job.strategy, env.world_size);
  options.rank = env.rank / stages;
  const bool is_later_stage = env.rank % stages > 0;
  options.images = !is_later_stage || job.data.bad_sample == job::BadSample::skip;
  options.form = image_form_for(device);
  if (job.data.use_dali && options.images && job::has_image_files(set))
    options.make_jpeg_decoder = [&device] { return device.make_jpeg_decoder(); };
  return options;
}

LoaderOptions training_loader(const job::JobSpec& job, const RankEnv& env, Device& device,
                              Timeline* timeline) {
  LoaderOptions options = of_rank(job.data.train, job, env, device);
  options.global_batch = job.train.global_batch.value_or(0);
  options.seed = job.train.seed;
  options.timeline = timeline;
  return options;
}

// Adds a note about ignored files, and one about images of different sizes.
void note_files(std::string_view key, const DataSet& set, std::vector<std::string>& notes) {
  if (const std::string told = describe(set.ignored()); !told.empty())
    notes.push_back(fmt::format("{}: {}", key, told));
  if (!set.unlike().empty())
    notes.push_back(fmt::format(
        "{}: images differ in size: {}; each is resized to {}x{}, and {}.image_size sets another size", key,
        set.unlike(), set.shape().width, set.shape().height, key));
}

// Labels that count from 1 give the model a class without samples.
void note_unused_label(const DataSet& train, std::vector<std::string>& notes) {
  const std::vector<std::int32_t>& labels = train.labels();
  if (train.class_names().empty() && train.classes() > 1 && std::ranges::find(labels, 0) == labels.end())
    notes.emplace_back(
        "data.train: no sample has label 0; labels count from 0, so the model gets a class without samples");
}

void note_shared_samples(const DataSet& test, const DataSet& train, std::vector<std::string>& notes) {
  const int shared = count_shared_samples(test, train);
  if (shared > 0)
    notes.push_back(fmt::format(
        "warning: {} of the {} of data.test are in data.train, too: the test's score says little about new samples",
        shared, plural(test.size(), "sample")));
}

}  // namespace

std::string warn_of_large_step(const DataSet& train, const job::JobSpec& job, int ranks) {
  const std::int64_t in_step = job::plan_shares(job, ranks).samples;
  if (in_step <= train.size()) return "";
  return fmt::format(
      "warning: one step of all ranks has {}, and data.train has {}: each comes about {:.1f} times in a step, which is a "
      "whole epoch",
      plural(in_step, "sample"), train.size(), static_cast<double>(in_step) / train.size());
}

LoaderOptions evaluation_loader(const job::JobSpec& job, const RankEnv& env, Device& device) {
  LoaderOptions options = of_rank(*job::evaluated_set(job.data), job, env, device);
  options.evaluation = true;
  options.batch =
      job::plan_shares(job, env.world_size).largest();  // the evaluation program is the same on every rank
  return options;
}

DataSets::DataSets(const job::DataSpec& spec, std::int64_t seed) : train(open_data_set(spec.train)) {
  note_files("data.train", *train, notes);
  note_unused_label(*train, notes);
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
  note_files("data.test", *test, notes);
  check_same_kind(*train, *test);
  if (const std::string note = compare_labels(*test, "data.test", train->class_names(), train->classes());
      !note.empty())
    notes.push_back(note);
  note_shared_samples(*test, *train, notes);
}

DataSets::DataSets(const job::DataSetSpec& test_spec, const std::vector<std::string>& classes)
    : test(open_test_set(test_spec, classes)) {}

Loaders::Loaders(const DataSets& sets, const job::JobSpec& job, const RankEnv& env, Device& device,
                 Timeline* timeline)
    : train(*sets.train, training_loader(job, env, device, timeline)) {
  if (sets.test) test = std::make_unique<Loader>(*sets.test, evaluation_loader(job, env, device));
}

}  // namespace fleetrun::runtime
