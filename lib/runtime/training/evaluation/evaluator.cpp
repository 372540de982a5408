#include "runtime/training/evaluation/evaluator.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error/error.h"
#include "job/spec/settle_pipeline.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/program_text.h"
#include "runtime/kernels/kernel.h"
#include "runtime/passes/feed_pixels.h"
#include "runtime/training/setup/compute_options.h"

namespace fleetrun::runtime {
namespace {

// The scores by which the program counts its hits.
ValueId find_scores(const Program& program) {
  for (const Op& op : program.ops)
    if (op.type == "accuracy") return op.inputs.front();
  throw Error(ErrorKind::internal, "the evaluation program has no accuracy");
}

// Of equal scores the first one is the highest, as for the accuracy.
std::int32_t class_with_highest(std::span<const float> scores) {
  return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// In double precision: softmax of the highest score.
float probability_of_highest(std::span<const float> scores, float highest) {
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - static_cast<double>(highest));
  return static_cast<float>(1 / sum);
}

void use_algorithms(Program& program, const Algorithms& algorithms) {
  for (Op& op : program.ops)
    if (const auto found = algorithms.find(program.value(op.outputs.front()).name); found != algorithms.end())
      op.attributes[kAlgorithm] = found->second;
}

// Rank 0's weights, by the memory of the host: the communicator need not reach that of the device.
void share_weights(const Program& program, Storage& storage, comm::Communicator& communicator) {
  if (communicator.size() == 1) return;
  for (const ValueId id : weights_of(program)) {
    const std::string& name = program.value(id).name;
    std::vector<float> values = storage.read(name);
    communicator.broadcast({values.data(), values.size(), DType::f32}, 0);
    storage.write(name, values);
  }
}

}  // namespace

job::JobSpec without_pipeline(job::JobSpec job) {
  if (job.strategy.pipeline && !job.train.global_batch)
    job.data.batch_size = job::micro_batches_of(job, job.strategy.hybrid_configs.pp_degree.value_or(1)).size;
  job.strategy.pipeline = false;
  return job;
}

namespace {

// The program has the layouts of the device, and the scores are its last fetch.
Program make_program(const job::JobSpec& job, const ModelFacts& facts, const Algorithms& algorithms,
                     Device& device, int ranks) {
  Program program = build_evaluation_program(job, facts, all_ops(), ranks);
  if (image_form_for(device) == ImageForm::pixels) feed_evaluation_pixels(program, all_ops(), job.data);
  use_algorithms(program, algorithms);
  propagate_layouts(program, all_ops(), device, {});
  program.fetches.push_back(find_scores(program));
  return program;
}

}  // namespace

Evaluator::Evaluator(const job::JobSpec& job, const ModelFacts& facts, const Algorithms& algorithms,
                     Device& device, comm::Communicator& communicator)
    : communicator_(communicator), classes_(facts.classes) {
  ExecutorOptions options = executor_options(job, 0, job.train.threads.value());
  std::vector<std::string> warnings;
  options.team = team_within_limit(options.team, device, warnings);
  device.enter_thread(options.team);  // layouts may depend on the team

  Program program = make_program(job, facts, algorithms, device, communicator.size());
  scores_ = program.value(program.fetches.back()).name;
  program_text_ = print_program(program, all_ops());

  storage_ = std::make_unique<Storage>(program, device, communicator);
  storage_->initialise(static_cast<std::uint64_t>(job.train.seed));
  if (communicator.rank() == 0) load_pretrained(job.model, program, *storage_);
  share_weights(program, *storage_, communicator);
  executor_ = std::make_unique<Executor>(std::move(program), device, *storage_,
                                         std::vector<comm::Communicator*>{}, options);
}

Score Evaluator::finish() { return sums_.reduce(communicator_, classes_); }

void Evaluator::evaluate(const BatchView& batch, std::span<const std::int32_t> samples,
                         std::vector<Prediction>& predictions) {
  bind_samples(*executor_, batch);
  executor_->run();
  const auto* losses = static_cast<const float*>(executor_->fetch("losses"));
  const auto* scores = static_cast<const float*>(executor_->fetch(scores_));
  sums_.add({losses, samples.size()}, static_cast<const float*>(executor_->fetch("hits")));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (batch.labels[i] < 0) continue;
    const std::span<const float> row(scores + static_cast<std::ptrdiff_t>(i) * classes_,
                                     static_cast<std::size_t>(classes_));
    const std::int32_t best = class_with_highest(row);
    predictions.push_back({.sample = samples[i],
                           .label = batch.labels[i],
                           .predicted = best,
                           .loss = losses[i],
                           .probability = probability_of_highest(row, row[static_cast<std::size_t>(best)])});
  }
}

}  // namespace fleetrun::runtime
