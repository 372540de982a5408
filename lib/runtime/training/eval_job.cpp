#include "runtime/training/eval_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "job/data_set_facts.h"
#include "runtime/data/sampler.h"
#include "runtime/observe/gather_texts.h"
#include "runtime/training/agree_on_data.h"
#include "runtime/training/agreement.h"
#include "runtime/training/data_sets.h"
#include "runtime/training/evaluator.h"
#include "runtime/training/model_facts.h"

namespace fleetrun::runtime {
namespace {

using Predictions = std::vector<Prediction>;

DataSets open_data(const job::JobSpec& job) {
  if (!job::evaluated_set(job.data))
    throw Error(
        ErrorKind::config, "the job has neither data.test nor data.split: found no data set to evaluate the model on",
        "the format and the path can follow the job file: data.test.format=image_folder data.test.path=FOLDER");
  return {job.data, job.train.seed};
}

// The numbers of this rank's samples in the data set, batch after batch.
std::vector<std::int32_t> samples_of_rank(const DataSet& set, const LoaderOptions& options) {
  return plan_epoch({.samples = set.size(),
                     .batch = options.batch,
                     .rank = options.rank,
                     .world = options.world,
                     .evaluation = true},
                    {});
}

void print_skipped(Loader& loader, std::ostream& out) {
  for (const std::string& why : loader.take_skipped())
    out << "warning: a sample is skipped: " << printable(why) << std::endl;
}

// Of this rank.
Predictions predict_all(const DataSet& set, const LoaderOptions& options, Evaluator& evaluator,
                        ProgressPage& page, std::ostream& out) {
  Loader loader(set, options);
  const std::vector<std::int32_t> samples = samples_of_rank(set, options);
  const auto size = static_cast<std::size_t>(loader.batch());
  Predictions predictions;
  predictions.reserve(samples.size());
  page.steps = static_cast<std::uint64_t>(loader.batches_per_epoch());
  loader.start_epoch(0);
  for (std::size_t first = 0; const Batch* batch = loader.next([&] { page.beat(); }); first += size) {
    evaluator.evaluate({batch->images, batch->labels}, std::span(samples).subspan(first, size), predictions);
    print_skipped(loader, out);
    page.step = page.step + 1;
    page.beat();
  }
  return predictions;
}

void require_numbers(const Predictions& predictions, const DataSet& set) {
  const auto bad = std::find_if(predictions.begin(), predictions.end(),
                                [](const Prediction& one) { return std::isnan(one.loss); });
  if (bad != predictions.end())
    throw Error(ErrorKind::numerics,
                fmt::format("the scores of {} are not finite", printable(set.describe(bad->sample))),
                "the pixels of the image, divided by data.test.std, may be too large for the model");
}

// Those of all ranks on rank 0, by sample.
Predictions gather(const Predictions& mine, comm::Communicator& communicator) {
  const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Prediction));
  Predictions all;
  for (const std::string& theirs : gather_texts(bytes, communicator)) {
    const std::size_t before = all.size();
    all.resize(before + theirs.size() / sizeof(Prediction));
    if (!theirs.empty()) std::memcpy(all.data() + before, theirs.data(), theirs.size());
  }
  std::sort(all.begin(), all.end(),
            [](const Prediction& a, const Prediction& b) { return a.sample < b.sample; });
  return all;
}

std::string path_of(const job::DataSetSpec& set) {
  for (const std::string* path : {&set.path, &set.list, &set.images})
    if (!path->empty()) return *path;
  return "synthetic images";
}

EvalSubject subject_of(const job::JobSpec& job, const DataSets& data, const ModelFacts& facts) {
  EvalSubject subject = {.model = job.model.pretrained.value_or(""), .data = path_of(*job::evaluated_set(job.data))};
  if (data.train) subject.classes = data.train->class_names();
  if (subject.classes.empty()) subject.classes = data.test->class_names();
  for (auto label = static_cast<int>(subject.classes.size()); label < facts.classes; ++label)
    subject.classes.push_back(std::to_string(label));
  return subject;
}

std::vector<std::string> names_of(const Predictions& predictions, const DataSet& set) {
  std::vector<std::string> names;
  names.reserve(predictions.size());
  for (const Prediction& one : predictions) names.push_back(set.describe(one.sample));
  return names;
}

}  // namespace

EvalReport eval_job(const job::JobSpec& asked, comm::World& world, ProgressPage& page, std::ostream& out) {
  page.phase = Phase::loading;
  page.beat();
  const job::JobSpec job = without_pipeline(asked);
  const std::unique_ptr<Device> device = make_agreed_device(world, job.strategy);
  const DataSets data = open_data(job);
  agree_on_data(world, data);
  const ModelFacts facts = resolve_model_facts(job.model, *data.train);
  Evaluator evaluator(job, facts, *device, *world.communicator,
                      job.train.threads.value_or(world.env.threads));
  agree_on_program(world, *device, evaluator.program_text());

  page.phase = Phase::evaluating;
  const Predictions mine = predict_all(*data.test, evaluation_loader(job, world.env), evaluator, page, out);
  require_numbers(mine, *data.test);
  const Score score = evaluator.finish();
  Predictions all = gather(mine, *world.communicator);
  page.phase = Phase::finished;
  if (world.env.rank != 0) return {};
  std::vector<std::string> names = names_of(all, *data.test);
  return make_report(subject_of(job, data, facts), score, std::move(all), std::move(names));
}

}  // namespace fleetrun::runtime
