// strategy.pipeline trains the same model as one rank does.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "runtime/checkpoint/owned_tensors.h"
#include "runtime/checkpoint/snapshot.h"
#include "support/resumed_training.h"
#include "support/slowdown.h"

namespace fleetrun::runtime::pipeline_test {
namespace {

constexpr int kBatch = 16;
constexpr double kRate = 0.05;

job::JobSpec job_of(job::ModelName model) {
  job::JobSpec job;
  job.model.name = model;
  job.model.hidden = {24, 20, 16, 12};
  job.data.batch_size = kBatch;
  return job;
}

job::JobSpec in_stages(job::JobSpec job, int micro_batches) {
  job.strategy.pipeline = true;
  job.strategy.pipeline_configs.accumulate_steps = micro_batches;
  return job;
}

// After `steps` steps, as rank 0 saves them.
PlainTensors train(const job::JobSpec& job, int ranks, int batch, int steps, double rate = kRate) {
  PlainTensors weights;
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, batch, 0, steps, rate);
    PlainTensors all = collect_weights(rank.trainer.whole_program(), rank.trainer.storage(),
                                       rank.communicator, Weights::trained);
    if (rank.communicator.rank() == 0) weights = std::move(all);
  });
  return weights;
}

// The norm of the difference, divided by that of `b`.
double distance(const PlainTensors& a, const PlainTensors& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (const auto& [name, tensor] : b) {
    const std::vector<float>& other = a.at(name).values;
    for (std::size_t i = 0; i < other.size(); ++i) {
      difference += std::pow(other[i] - tensor.values[i], 2);
      norm += std::pow(tensor.values[i], 2);
    }
  }
  return std::sqrt(difference / norm);
}

// One rank, whose updates merge as many batches as the pipeline has micro-batches.
PlainTensors train_merging(job::JobSpec job, int micro_batches, int steps) {
  const int size = kBatch / micro_batches;
  job.data.batch_size = size;
  job.strategy.gradient_merge = true;
  job.strategy.gradient_merge_configs.k_steps = micro_batches;
  PlainTensors weights;
  test::run_trainers(job, 1, [&](test::TrainedRank& rank) {
    for (int step = 0; step < steps; ++step) {
      const test::StepSamples samples(step, kBatch);
      for (int i = 0; i < micro_batches; ++i) rank.trainer.step(samples.part(i * size), kRate);
    }
    weights = collect_weights(rank.trainer.whole_program(), rank.trainer.storage(), rank.communicator,
                              Weights::trained);
  });
  return weights;
}

TEST_CASE("a pipeline of 2 or 4 ranks learns what one rank learns from the same batches") {
  for (const job::ModelName model : {job::ModelName::mlp, job::ModelName::lenet}) {
    const job::JobSpec job = job_of(model);
    const int steps = 20;
    const PlainTensors plain = train(job, 1, kBatch, steps);
    CHECK(distance(train(job, 1, kBatch, 0), plain) > 0.01);
    for (const int ranks : {1, 2, 4})
      for (const int micro_batches : {1, 2, 8}) {
        CAPTURE(static_cast<int>(model));
        CAPTURE(ranks);
        CAPTURE(micro_batches);
        CHECK(distance(train(in_stages(job, micro_batches), ranks, kBatch, steps), plain) < 1e-5);
      }
  }
}

TEST_CASE("a pipeline with whole batches trains a network with batch norms as one rank does") {
  const job::JobSpec job = job_of(job::ModelName::resnet20);
  const int steps = testing::kSlowdown > 1 ? 4 : 20;
  const PlainTensors plain = train(job, 1, kBatch, steps);
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    CHECK(distance(train(in_stages(job, 1), ranks, kBatch, steps), plain) < 1e-5);
  }
}

TEST_CASE("a pipeline takes the statistics of batch norms from micro-batches, as merged gradients do") {
  const job::JobSpec job = job_of(job::ModelName::resnet20);
  const int steps = testing::kSlowdown > 1 ? 4 : 20, micro_batches = 4;
  const PlainTensors merged = train_merging(job, micro_batches, steps);
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    CHECK(distance(train(in_stages(job, micro_batches), ranks, kBatch, steps), merged) < 1e-5);
  }
}

TEST_CASE("replicas of a pipeline learn what one rank learns from the batches of all of them") {
  job::JobSpec job = job_of(job::ModelName::lenet);
  const int steps = 10, batch = kBatch / 2;
  const PlainTensors plain = train(job, 1, kBatch, steps);
  job.data.batch_size = batch;
  for (const auto& [ranks, stages] : {std::pair{4, 2}, {6, 3}, {2, 1}}) {
    CAPTURE(ranks);
    job.strategy.hybrid_configs.pp_degree = stages;
    for (const int micro_batches : {1, 4})
      if (ranks / stages == 2)
        CHECK(distance(train(in_stages(job, micro_batches), ranks, batch, steps), plain) < 1e-5);
  }
}

TEST_CASE("both orders of a pipeline learn the same bits") {
  job::JobSpec job = in_stages(job_of(job::ModelName::lenet), 8);
  const PlainTensors one_by_one = train(job, 4, kBatch, 5);
  job.strategy.pipeline_configs.schedule_mode = job::PipelineSchedule::forwards_then_backwards;
  CHECK(format_tensors(train(job, 4, kBatch, 5)) == format_tensors(one_by_one));
}

struct Variant {
  const char* name;
  void (*turn)(job::JobSpec&);
};

const std::vector<Variant>& variants() {
  using Spec = job::JobSpec;
  static const std::vector<Variant> all = {
      {"sgd", [](Spec& s) { s.optimizer.name = job::OptimizerName::sgd; }},
      {"adam", [](Spec& s) { s.optimizer.name = job::OptimizerName::adam; }},
      {"adamw", [](Spec& s) { s.optimizer.name = job::OptimizerName::adamw; }},
      {"lars", [](Spec& s) { s.strategy.lars = true; }},
      {"lamb",
       [](Spec& s) {
         s.optimizer.name = job::OptimizerName::adam;
         s.strategy.lamb = true;
       }},
      {"clip by norm",
       [](Spec& s) {
         s.optimizer.gradient_clip = {job::ClipBy::norm, 0.01};
       }},
      {"clip by value",
       [](Spec& s) {
         s.optimizer.gradient_clip = {job::ClipBy::value, 0.001};
       }},
      {"clip by global norm",
       [](Spec& s) {
         s.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.1};
       }},
      {"factors of the learning rate",
       [](Spec& s) {
         s.optimizer.learning_rate_factors = {{"f", 0.5}};
       }},
      {"averages",
       [](Spec& s) {
         s.optimizer.ema_decay = 0.5;
         s.optimizer.ema_evaluate = true;
       }},
      {"recompute", [](Spec& s) { s.strategy.recompute = true; }},
      {"auto fusion", [](Spec& s) { s.strategy.build_strategy.enable_auto_fusion = true; }},
      {"no place twice", [](Spec& s) { s.strategy.build_strategy.enable_inplace = false; }},
  };
  return all;
}

TEST_CASE("optimizers and strategies work in a pipeline as on one rank") {
  for (const Variant& variant : variants())
    for (const job::ModelName model : {job::ModelName::lenet, job::ModelName::resnet20}) {
      CAPTURE(variant.name);
      CAPTURE(static_cast<int>(model));
      job::JobSpec job = job_of(model);
      job.optimizer.weight_decay = 0.001;
      job.strategy.lars_configs.lars_weight_decay = 0.001;
      if (std::string(variant.name).starts_with("la")) job.optimizer.weight_decay = 0;
      variant.turn(job);
      const double rate = 0.005;
      const int steps = 4;
      const PlainTensors whole = train(in_stages(job, 4), 1, kBatch, steps, rate);
      CHECK(format_tensors(train(in_stages(job, 4), 3, kBatch, steps, rate)) == format_tensors(whole));
      if (model == job::ModelName::lenet) CHECK(distance(train(job, 1, kBatch, steps, rate), whole) < 1e-4);
    }
}

Score evaluate(const job::JobSpec& job, int ranks, Score* of_step = nullptr) {
  std::vector<Score> scores(static_cast<std::size_t>(ranks)), of_steps = scores;
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, 3, kRate);
    const auto at = static_cast<std::size_t>(rank.communicator.rank());
    of_steps[at] = rank.trainer.score();
    rank.trainer.begin_evaluation();
    test::StepSamples samples(100, 2 * kBatch);
    samples.labels.back() = -1;
    for (int i = 0; i < 2; ++i) rank.trainer.evaluate(samples.part(i * kBatch));
    scores[at] = rank.trainer.finish_evaluation();
  });
  for (const Score& score : scores) CHECK(score.loss == scores.front().loss);
  for (const Score& score : of_steps) CHECK(score.loss == of_steps.front().loss);
  if (of_step != nullptr) *of_step = of_steps.back();
  return scores.front();
}

TEST_CASE("every rank of a pipeline knows the scores, and each sample counts once") {
  for (const bool averages : {false, true}) {
    job::JobSpec job = job_of(job::ModelName::lenet);
    if (averages) job.optimizer.ema_decay = 0.5;
    job.optimizer.ema_evaluate = averages;
    Score of_step, of_plain_step;
    const Score plain = evaluate(job, 1, &of_plain_step);
    const Score staged = evaluate(in_stages(job, 4), 3, &of_step);
    CHECK(staged.samples == 2 * kBatch - 1);
    CHECK(staged.samples == plain.samples);
    CHECK(staged.loss == doctest::Approx(plain.loss).epsilon(1e-5));
    CHECK(staged.acc5 == plain.acc5);
    CHECK(of_step.samples == kBatch);
    CHECK(of_step.loss == doctest::Approx(of_plain_step.loss).epsilon(1e-5));
    CHECK(of_step.acc1 == of_plain_step.acc1);
  }
}

struct Found {
  Snapshot saved, last;
};

Found train_and_save(const job::JobSpec& job, int ranks, const Snapshot* from) {
  Found found;
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    const auto keep = [&](int steps, Snapshot& place) {
      Snapshot snapshot = test::snapshot_after(rank, steps);
      if (rank.communicator.rank() == 0) place = std::move(snapshot);
    };
    if (from != nullptr) {
      test::resume_from(*from, rank);
    } else {
      rank.trainer.share_parameters();
      test::train_steps(rank, kBatch, 0, 3, 0.01);
      keep(3, found.saved);
    }
    test::train_steps(rank, kBatch, 3, 6, 0.01);
    keep(6, found.last);
  });
  return found;
}

bool is_same(const Snapshot& a, const Snapshot& b) {
  if (a.files.size() != b.files.size()) return false;
  for (const auto& [name, tensors] : a.files)
    if (format_tensors(tensors) != format_tensors(b.files.at(name))) return false;
  return true;
}

TEST_CASE("a pipeline goes on from a checkpoint to the same bits, in any number of stages") {
  job::JobSpec job = in_stages(job_of(job::ModelName::resnet20), 4);
  job.model.dropout = 0.25;
  job.optimizer.name = job::OptimizerName::adam;
  job.optimizer.ema_decay = 0.5;
  const Found whole = train_and_save(job, 3, nullptr);
  CHECK(is_same(train_and_save(job, 3, &whole.saved).last, whole.last));
  CHECK(is_same(train_and_save(job, 2, &whole.saved).last, whole.last));
}

TEST_CASE("replicas of a pipeline go on from a checkpoint to the same bits") {
  job::JobSpec job = in_stages(job_of(job::ModelName::lenet), 4);
  job.strategy.hybrid_configs.pp_degree = 2;
  job.model.dropout = 0.25;
  job.optimizer.name = job::OptimizerName::adam;
  job.optimizer.ema_decay = 0.5;
  const Found whole = train_and_save(job, 4, nullptr);
  CHECK(is_same(train_and_save(job, 4, &whole.saved).last, whole.last));
}

// Of the first of 3 stages.
std::size_t activation_bytes(int micro_batches, job::PipelineSchedule schedule) {
  job::JobSpec job = in_stages(job_of(job::ModelName::resnet20), micro_batches);
  job.data.batch_size = 2 * micro_batches;
  job.strategy.pipeline_configs.schedule_mode = schedule;
  std::size_t bytes = 0;
  test::run_trainers(job, 3, [&](test::TrainedRank& rank) {
    if (rank.communicator.rank() == 0) bytes = rank.trainer.executor().schedule().arena_bytes;
  });
  return bytes;
}

TEST_CASE("with 1F1B the memory of activations does not grow with the number of micro-batches") {
  const std::size_t few = activation_bytes(4, job::PipelineSchedule::one_forward_one_backward);
  const std::size_t many = activation_bytes(16, job::PipelineSchedule::one_forward_one_backward);
  CHECK(static_cast<double>(many) < 1.02 * static_cast<double>(few));
  CHECK(activation_bytes(16, job::PipelineSchedule::forwards_then_backwards) > 2 * many);
}

TEST_CASE("a model that has too few layers for the ranks is refused, with the number of stages that it has") {
  job::JobSpec job = in_stages(job_of(job::ModelName::lenet), 4);
  try {
    train(job, 5, kBatch, 0);
    FAIL("trained");
  } catch (const Error& error) {
    CHECK(error.message().find("the model can be cut into 4 stages, found 5 ranks, wanted 4 or fewer") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::pipeline_test
