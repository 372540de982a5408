// localsgd and adaptive_localsgd against a simulation of all ranks in double precision, and what evaluations, checkpoints and
// comparisons make of weights that differ between ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/counted_training.h"
#include "support/rank_simulation.h"
#include "support/resumed_training.h"

namespace fleetrun::runtime::local_training_test {
namespace {

using test::distance;
using test::Tensor;
using test::Tensors;
using test::widened;

constexpr int kBatch = 4;  // of a rank
constexpr int kSteps = 20;
constexpr double kRate = 0.02;
constexpr double kClose = 1e-5;  // of the norm

job::JobSpec job_of(job::ModelName model) {
  job::JobSpec job;
  job.model.name = model;
  job.model.hidden = {24, 16};
  job.data.batch_size = kBatch;
  job.optimizer.weight_decay = 0.01;
  job.optimizer.learning_rate.base = kRate;
  return job;
}

// All ranks in one place, in double precision. `is_due(step, mean loss, rate)`: whether the weights are averaged after step 1, 2, ...
struct Simulation {
  std::vector<Tensors> weights, velocity;
  double momentum, decay;

  Simulation(const Tensors& start, int ranks, const job::OptimizerSpec& optimizer)
      : weights(static_cast<std::size_t>(ranks), start),
        velocity(static_cast<std::size_t>(ranks)),
        momentum(optimizer.name == job::OptimizerName::momentum ? optimizer.momentum : 0),
        decay(optimizer.weight_decay) {}

  void update(std::size_t rank, const Tensors& gradients, double rate) {
    for (auto& [name, w] : weights[rank]) {
      Tensor& v = velocity[rank][name];
      v.resize(w.size());
      for (std::size_t i = 0; i < w.size(); ++i) {
        v[i] = momentum * v[i] + gradients.at(name)[i] + decay * w[i];
        w[i] -= rate * v[i];
      }
    }
  }

  Tensors mean() const {
    Tensors sum = weights.front();
    for (auto& [name, w] : sum)
      for (std::size_t i = 0; i < w.size(); ++i) {
        w[i] = 0;
        for (const Tensors& of_rank : weights)
          w[i] += of_rank.at(name)[i] / static_cast<double>(weights.size());
      }
    return sum;
  }

  void average() { std::fill(weights.begin(), weights.end(), Tensors(mean())); }
};

using IsDue = std::function<bool(int step, double mean_loss, double rate)>;

double rate_in(int step) { return step < kSteps / 2 ? kRate : kRate / 4; }

// A rounding that moves a ReLU of a deep net across 0 makes another training of it, so the gradients of the simulation come from the
// weights of the ranks themselves.
void check_against_simulation(const job::JobSpec& job, int ranks, const IsDue& is_due) {
  CAPTURE(ranks);
  const test::WeightsByStep seen = test::watch_training(job, ranks, kSteps, rate_in);
  test::SoloGradients gradients(job);
  Simulation simulation(widened(seen[0][0]), ranks, job.optimizer);
  for (int step = 0; step < kSteps; ++step) {
    const test::StepSamples samples(step, kBatch * ranks);
    double loss = 0;
    for (std::size_t rank = 0; rank < seen[0].size(); ++rank) {
      const Tensors found = gradients.at(seen[static_cast<std::size_t>(step)][rank],
                                         samples.part(kBatch * static_cast<int>(rank)));
      loss += gradients.loss() / ranks;
      simulation.update(rank, found, rate_in(step));
    }
    if (is_due(step + 1, loss, rate_in(step))) simulation.average();
  }
  for (std::size_t rank = 0; rank < seen[0].size(); ++rank)
    CHECK(distance(simulation.weights[rank], widened(seen[kSteps][rank])) < kClose);
}

job::JobSpec with_localsgd(job::JobSpec job, int k_steps, int begin_step) {
  job.strategy.localsgd = true;
  job.strategy.localsgd_configs = {.k_steps = k_steps, .begin_step = begin_step};
  return job;
}

job::JobSpec with_adaptive_localsgd(job::JobSpec job, int init_k_steps, int begin_step) {
  job.strategy.adaptive_localsgd = true;
  job.strategy.adaptive_localsgd_configs = {.init_k_steps = init_k_steps, .begin_step = begin_step};
  return job;
}

TEST_CASE("localsgd averages the weights until begin_step, then once in k_steps steps") {
  for (const job::ModelName model : test::simulated_models())
    for (const int ranks : test::simulated_ranks())
      check_against_simulation(with_localsgd(job_of(model), 4, 3), ranks,
                               [](int step, double, double) { return step <= 3 || (step - 3) % 4 == 0; });
}

TEST_CASE("localsgd works with sgd") {
  job::JobSpec job = with_localsgd(job_of(job::ModelName::lenet), 3, 1);
  job.optimizer.name = job::OptimizerName::sgd;
  check_against_simulation(job, 2, [](int step, double, double) { return (step - 1) % 3 == 0; });
}

TEST_CASE(
    "adaptive_localsgd averages less often as the learning rate falls, and more often as the loss falls") {
  for (const job::ModelName model : test::simulated_models())
    for (const int ranks : test::simulated_ranks()) {
      double first_loss = 0, k_steps = 2;
      int last = 0, averages = 0;
      check_against_simulation(
          with_adaptive_localsgd(job_of(model), 2, 2), ranks, [&](int step, double loss, double rate) {
            if (step > 2 && step - last < k_steps) return false;
            if (first_loss == 0) first_loss = loss;
            k_steps = std::clamp(std::ceil(std::sqrt(kRate * loss / (rate * first_loss) * 2)), 1.0, 16.0);
            last = step;
            ++averages;
            return true;
          });
      CHECK(averages > 4);
      CHECK(averages < kSteps);
    }
}

TEST_CASE("with k_steps 1, ranks that average weights train as ranks that sum gradients") {
  const job::JobSpec plain = job_of(job::ModelName::lenet);
  std::vector<test::Weights> weights(2);
  for (const bool local : {false, true})
    test::run_trainers(local ? with_localsgd(plain, 1, 1) : plain, 2, [&](test::TrainedRank& rank) {
      rank.trainer.share_parameters();
      test::train_steps(rank, kBatch, 0, kSteps, kRate);
      if (rank.communicator.rank() == 0) weights[local ? 1 : 0] = test::weights_of(rank.trainer);
    });
  CHECK(distance(widened(weights[0]), widened(weights[1])) < kClose);
}

TEST_CASE("between two averages the ranks send nothing") {
  const job::JobSpec job = with_localsgd(job_of(job::ModelName::mlp), 3, 1);
  test::run_counted(job, [&](const test::CountedRank& counted) {
    const test::StepSamples samples(0, 2 * kBatch);
    for (int step = 1; step <= 7; ++step) {
      counted.trainer.step(samples.part(kBatch * counted.rank), kRate);
      CHECK(counted.calls.take().size() == (step % 3 == 1 ? 1 : 0));
    }
  });
}

TEST_CASE("an evaluation scores the mean of the weights, and each rank trains on with its own") {
  const job::JobSpec job = with_localsgd(job_of(job::ModelName::resnet20), 10, 1);
  std::vector<test::Weights> own(2), evaluated(2), back(2);
  std::vector<std::uint64_t> fingerprints(2);
  test::run_trainers(job, 2, [&](test::TrainedRank& rank) {
    const auto at = static_cast<std::size_t>(rank.communicator.rank());
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, 4, kRate);
    own[at] = test::weights_of(rank.trainer);
    fingerprints[at] = rank.trainer.fingerprint();
    rank.trainer.begin_evaluation();
    evaluated[at] = test::weights_of(rank.trainer);
    {
      const TrainedWeightsHere here(rank.trainer);
      CHECK(test::weights_of(rank.trainer) == own[at]);
    }
    CHECK(test::weights_of(rank.trainer) == evaluated[at]);
    rank.trainer.finish_evaluation();
    back[at] = test::weights_of(rank.trainer);
  });
  CHECK(own[0] != own[1]);
  CHECK(fingerprints[0] == fingerprints[1]);  // of the last average
  CHECK(evaluated[0] == evaluated[1]);
  CHECK(back == own);
  Simulation ranks(widened(own[0]), 2, job.optimizer);
  ranks.weights[1] = widened(own[1]);
  CHECK(distance(ranks.mean(), widened(evaluated[0])) < kClose);
}

TEST_CASE(
    "an evaluation and the averages leave frozen weights as they are, also where a mean would round them") {
  job::JobSpec job = with_localsgd(job_of(job::ModelName::resnet20), 2, 1);
  job.model.freeze = {"conv1", "bn1"};
  test::run_trainers(job, 3, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    Storage& storage = rank.trainer.storage();
    const std::vector<float> weight = storage.read("conv1.weight"), mean = storage.read("bn1.running_mean");
    const test::Weights start = test::weights_of(rank.trainer);
    test::train_steps(rank, kBatch, 0, 4, kRate);
    rank.trainer.begin_evaluation();
    CHECK(storage.read("conv1.weight") == weight);
    CHECK(storage.read("bn1.running_mean") == mean);
    CHECK(test::weights_of(rank.trainer).at("fc.weight") != start.at("fc.weight"));
    rank.trainer.finish_evaluation();
  });
}

Snapshot saved_after(const job::JobSpec& job, int ranks, int steps, std::vector<test::Weights>& own) {
  Snapshot saved;
  own.assign(static_cast<std::size_t>(ranks), {});
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, steps, kRate);
    own[static_cast<std::size_t>(rank.communicator.rank())] = test::weights_of(rank.trainer);
    Snapshot snapshot = test::snapshot_after(rank, steps);
    if (rank.communicator.rank() == 0) saved = std::move(snapshot);
  });
  return saved;
}

TEST_CASE(
    "a checkpoint has the weights of each rank and their mean; another number of ranks goes on with the mean") {
  for (const bool adaptive : {false, true}) {
    const job::JobSpec plain = job_of(job::ModelName::resnet20);
    const job::JobSpec job = adaptive ? with_adaptive_localsgd(plain, 8, 1) : with_localsgd(plain, 8, 1);
    std::vector<test::Weights> own;
    const Snapshot saved = saved_after(job, 2, 3, own);
    REQUIRE(saved.files.count(kRankStatesFile) == 1);
    const std::string name = "layer1.0.conv1.weight";
    for (const int rank : {0, 1})
      CHECK(saved.files.at(kRankStatesFile).at(name + "." + std::to_string(rank)).values ==
            own[static_cast<std::size_t>(rank)].at(name));
    const std::vector<float>& mean = saved.files.at(kModelFile).at(name).values;
    CHECK(mean[5] == doctest::Approx((own[0].at(name)[5] + own[1].at(name)[5]) / 2));
    for (const int ranks : {1, 3})
      test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
        test::resume_from(saved, rank);
        CHECK(rank.trainer.storage().read(name) == mean);
        if (ranks > 1) CHECK(rank.trainer.storage().read(name + ".snapshot") == mean);
      });
  }
}

TEST_CASE("localsgd goes on from a checkpoint of a plain training, and the other way round") {
  std::vector<test::Weights> own;
  const job::JobSpec plain = job_of(job::ModelName::mlp), local = with_localsgd(plain, 4, 1);
  for (const bool to_local : {false, true}) {
    const Snapshot saved = saved_after(to_local ? plain : local, 2, 3, own);
    test::run_trainers(to_local ? local : plain, 2, [&](test::TrainedRank& rank) {
      test::resume_from(saved, rank);
      CHECK(test::weights_of(rank.trainer).at("f1.weight") ==
            saved.files.at(kModelFile).at("f1.weight").values);
      test::train_steps(rank, kBatch, 3, 5, kRate);
    });
  }
}

}  // namespace
}  // namespace fleetrun::runtime::local_training_test
