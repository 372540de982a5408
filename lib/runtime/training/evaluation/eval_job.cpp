#include "runtime/training/evaluation/eval_job.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "base/system/unique_fd.h"
#include "base/text/printable.h"
#include "job/spec/data_set_facts.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/data/formats/class_names.h"
#include "runtime/data/order/sampler.h"
#include "runtime/data/split.h"
#include "runtime/observe/gather_texts.h"
#include "runtime/training/evaluation/evaluator.h"
#include "runtime/training/ranks/agree_on_data.h"
#include "runtime/training/ranks/agreement.h"
#include "runtime/training/setup/compute_options.h"
#include "runtime/training/setup/data_sets.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun::runtime {
namespace {

using Predictions = std::vector<Prediction>;

std::string path_of(const job::DataSetSpec& set) {
  for (const std::string* path : {&set.path, &set.list, &set.images})
    if (!path->empty()) return *path;
  return "synthetic images";
}

// What the model file says about itself, as rank 0 reads it. Nothing: the weights come from another program.
std::optional<ModelCard> read_card(const job::JobSpec& job, comm::Communicator& communicator) {
  const std::string path = job.model.pretrained.value_or("");
  JsonValue text = JsonValue::object();
  if (const UniqueFd fd(communicator.rank() == 0 ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1); fd)
    for (const auto& [key, value] : read_metadata(fd.get())) text.add(key, value);
  Metadata metadata;
  const JsonDocument shared = read_json(text_of_first(to_json(text), communicator));
  for (const JsonMember& entry : shared.root.members) metadata[entry.key] = entry.value.text;
  if (!metadata.contains("model.name")) return std::nullopt;
  return read_model_card(metadata, path);
}

// Without the training's data set, if the model file says what the model needs of it.
DataSets open_data(const job::JobSpec& job, const std::optional<ModelCard>& card) {
  if (!job::evaluated_set(job.data))
    throw Error(ErrorKind::config,
                "the job has neither data.test nor data.split: found no data set to evaluate the model on");
  return card && job.data.test ? DataSets(*job.data.test, card->class_names)
                               : DataSets(job.data, job.train.seed);
}

// A model is worth evaluating on samples that its training has set aside. Returns a warning if the model file does not say which they are.
// Throws Error(config) if they are others.
std::vector<std::string> check_split(const job::JobSpec& job, const std::optional<ModelCard>& card,
                                     const SplitFacts& split) {
  if (!job.data.split) return {};
  const std::string path = job.model.pretrained.value_or("");
  if (!card || !card->split)
    return {
        fmt::format("warning: {} does not say which samples its training has set aside: with data.split the "
                    "model may be evaluated on samples that it was trained on",
                    printable(path))};
  const std::string difference = difference_of(*card->split, split);
  if (difference.empty()) return {};
  const std::string keys = keys_that_differ(*card->split, split);
  throw Error(
      ErrorKind::config,
      fmt::format(
          "{} was trained {}: with data.split the model would be evaluated on samples that it was trained on",
          path, difference),
      keys.empty()
          ? "data.split=null data.test.format=image_folder data.test.path=FOLDER evaluates it on other samples"
          : keys + " evaluates it on the samples that its training has set aside");
}

// Returns a warning if the training of the model has divided the samples of data.test by data.split, because it has trained the model on most
// of them.
std::vector<std::string> check_trained_samples(const job::JobSpec& job, const std::optional<ModelCard>& card,
                                               const DataSet& test) {
  if (job.data.split || !card || !card->split) return {};
  const SplitFacts& was = *card->split;
  if (was.share == 0 || test.size() != was.train + was.evaluation) return {};
  const SplitSet parts =
      split_data_set(open_test_set(*job.data.test, card->class_names), was.share, was.seed);
  if (make_split_facts(was.share, was.seed, *parts.train, *parts.test) != was) return {};
  return {fmt::format(
      "warning: the model was trained on {} of these {} samples (data.split {}); fleetrun eval JOB.json evaluates it "
      "on the {} others",
      was.train, test.size(), was.share, was.evaluation)};
}

// Warnings if the model sees other numbers than in its training, or perhaps other labels, or has other weights than its evaluations.
std::vector<std::string> check_samples(const job::JobSpec& job, const std::optional<ModelCard>& card,
                                       const DataSets& data, const ModelFacts& facts) {
  std::vector<std::string> lines;
  if (card) {
    lines = differences_of_pixels(*card, make_model_card(job, facts, {}), set_of_card(job),
                                  "when the model was trained");
    const std::string averages = warning_about_averages(*card, printable(job.model.pretrained.value_or("")));
    if (!averages.empty()) lines.push_back(averages);
  }
  const std::vector<std::string>& known = card ? card->class_names : data.train->class_names();
  if (const std::string note =
          compare_labels(*data.test, path_of(*job::evaluated_set(job.data)), known, facts.classes);
      !note.empty())
    lines.push_back(note);
  return lines;
}

void print_of_first(const std::vector<std::string>& lines, const RankEnv& env, std::ostream& out) {
  if (env.rank != 0) return;
  for (const std::string& line : lines) out << line << std::endl;
}

std::string hint_about_shape(const ImageShape& found, const ImageShape& wanted, const std::string& set) {
  if (found.height == wanted.height && found.width == wanted.width)
    return fmt::format("{}.channels={} makes them so", set, wanted.channels);
  if (wanted.height == wanted.width)
    return fmt::format("{0}.image_size={1} {0}.channels={2} makes them so", set, wanted.height,
                       wanted.channels);
  return fmt::format("image_size makes squares only, so all images must have {}x{} pixels", wanted.width,
                     wanted.height);
}

ModelFacts facts_of_model(const job::JobSpec& job, const std::optional<ModelCard>& card,
                          const DataSets& data) {
  if (!card) return resolve_model_facts(job.model, *data.train);
  const ModelFacts facts = card->facts();
  const ImageShape& shape = data.test->shape();
  const auto& [channels, height, width] = facts.input_shape;
  if (!(shape == ImageShape{channels, height, width}))
    throw Error(
        ErrorKind::data,
        fmt::format("the images of {} are [{},{},{}], and the model takes [{},{},{}]",
                    path_of(*job::evaluated_set(job.data)), shape.channels, shape.height, shape.width,
                    channels, height, width),
        hint_about_shape(shape, {channels, height, width}, job.data.split ? "data.train" : "data.test"));
  if (data.test->classes() > facts.classes)
    throw Error(ErrorKind::data,
                fmt::format("{} has {} classes, and the model only {}",
                            path_of(*job::evaluated_set(job.data)), data.test->classes(), facts.classes));
  return facts;
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

// Of one rank.
struct Predicted {
  Predictions predictions;
  std::vector<std::string> skipped;  // why; a line for each sample that has no prediction
};

Predicted predict_all(const DataSet& set, const LoaderOptions& options, Evaluator& evaluator,
                      ProgressPage& page) {
  Loader loader(set, options);
  const std::vector<std::int32_t> samples = samples_of_rank(set, options);
  const auto size = static_cast<std::size_t>(loader.batch());
  Predicted mine;
  mine.predictions.reserve(samples.size());
  page.steps = static_cast<std::uint64_t>(loader.batches_per_epoch());
  loader.start_epoch(0);
  for (std::size_t first = 0; const Batch* batch = loader.next([&] { page.beat(); }); first += size) {
    evaluator.evaluate(view_of(*batch), std::span(samples).subspan(first, size), mine.predictions);
    for (const std::string& why : loader.take_skipped()) mine.skipped.push_back(printable(why));
    page.step = page.step + 1;
    page.beat();
  }
  return mine;
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

// Prints those of all ranks on rank 0, and returns their number there.
std::int64_t tell_skipped(const std::vector<std::string>& mine, comm::World& world, std::ostream& out) {
  std::string lines;
  for (const std::string& why : mine) lines += "warning: a sample is skipped: " + why + "\n";
  std::int64_t count = 0;
  for (const std::string& theirs : gather_texts(lines, *world.communicator)) {
    out << theirs << std::flush;
    count += std::count(theirs.begin(), theirs.end(), '\n');
  }
  return count;
}

EvalSubject subject_of(const job::JobSpec& job, const std::optional<ModelCard>& card, const DataSets& data,
                       const ModelFacts& facts) {
  EvalSubject subject = {.model = job.model.pretrained.value_or(""),
                         .data = path_of(*job::evaluated_set(job.data))};
  subject.classes = card ? card->class_names : data.train->class_names();
  if (subject.classes.empty()) subject.classes = data.test->class_names();
  for (auto label = static_cast<int>(subject.classes.size()); label < facts.classes; ++label)
    subject.classes.push_back(std::to_string(label));
  return subject;
}

std::vector<std::string> names_of(const Predictions& predictions, const DataSet& set) {
  std::vector<std::string> names;
  names.reserve(predictions.size());
  for (const Prediction& one : predictions) names.push_back(set.source_of(one.sample));
  return names;
}

}  // namespace

EvalReport eval_job(const job::JobSpec& asked, comm::World& world, ProgressPage& page, std::ostream& out) {
  page.phase = Phase::loading;
  page.beat();
  job::JobSpec job = without_pipeline(asked);
  job.train.threads = job.train.threads.value_or(world.env.threads);
  const std::unique_ptr<Device> device = make_agreed_device(world, job.strategy);
  const std::optional<ModelCard> card = read_card(job, *world.communicator);
  const DataSets data = open_data(job, card);
  agree_on_data(world, data);
  print_of_first(check_split(job, card, data.split), world.env, out);
  if (world.env.rank == 0) print_of_first(check_trained_samples(job, card, *data.test), world.env, out);
  const ModelFacts facts = facts_of_model(job, card, data);
  print_of_first(check_samples(job, card, data, facts), world.env, out);
  const Algorithms algorithms = card && world.env.device == "cpu" ? card->algorithms : Algorithms();
  Evaluator evaluator(job, facts, algorithms, *device, *world.communicator);
  agree_on_program(world, *device, evaluator.program_text());

  page.phase = Phase::evaluating;
  const auto [mine, skipped] =
      predict_all(*data.test, evaluation_loader(job, world.env, *device), evaluator, page);
  const std::int64_t all_skipped = tell_skipped(skipped, world, out);
  require_numbers(mine, *data.test);
  const Score score = evaluator.finish();
  require_samples(score, data.test->size());
  Predictions all = gather(mine, *world.communicator);
  page.phase = Phase::finished;
  if (world.env.rank != 0) return {};
  std::vector<std::string> names = names_of(all, *data.test);
  EvalSubject subject = subject_of(job, card, data, facts);
  subject.skipped = all_skipped;
  return make_report(std::move(subject), score, std::move(all), std::move(names));
}

}  // namespace fleetrun::runtime
