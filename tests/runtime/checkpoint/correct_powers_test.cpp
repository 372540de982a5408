#include "runtime/checkpoint/correct_powers.h"

#include <doctest/doctest.h>

#include <cmath>

#include "runtime/optim/average_weights.h"
#include "support/resumed_training.h"

namespace fleetrun::runtime::correct_powers_test {
namespace {

constexpr int kBatch = 4;
constexpr double kRate = 0.05;
const std::string kWeight = "f1.weight";

job::JobSpec job_of(double beta1, double ema_decay) {
  job::JobSpec job;
  job.model.name = job::ModelName::mlp;
  job.model.hidden = {8};
  job.data.batch_size = kBatch;
  job.optimizer.name = job::OptimizerName::adam;
  job.optimizer.beta1 = beta1;
  job.optimizer.ema_decay = ema_decay;
  return job;
}

std::map<std::string, double> decays_of(const job::JobSpec& job) {
  return {
      {"beta1", job.optimizer.beta1}, {"beta2", job.optimizer.beta2}, {"ema_decay", job.optimizer.ema_decay}};
}

// After `steps` steps.
Checkpoint checkpoint_of(const job::JobSpec& job, int steps) {
  Checkpoint checkpoint;
  test::run_trainers(job, 1, [&](test::TrainedRank& rank) {
    test::train_steps(rank, kBatch, 0, steps, kRate);
    checkpoint = test::as_checkpoint(test::snapshot_after(rank, steps));
  });
  checkpoint.state.decays = decays_of(job);
  return checkpoint;
}

TEST_CASE("averages of a young training stay means of its weights when ema_decay changes") {
  constexpr int kSteps = 20;
  Checkpoint checkpoint = checkpoint_of(job_of(0.9, 0.999), kSteps);
  const job::JobSpec changed = job_of(0.9, 0.5);
  correct_powers(checkpoint, decays_of(changed));
  test::run_trainers(changed, 1, [&](test::TrainedRank& rank) {
    test::resume_from(&checkpoint, kSteps, rank);
    const std::vector<float> before = rank.trainer.storage().read(average_name(kWeight));
    test::train_steps(rank, kBatch, kSteps, kSteps + 1, kRate);
    const std::vector<float> weights = rank.trainer.storage().read(kWeight);
    const std::vector<float> after = rank.trainer.storage().read(average_name(kWeight));
    const double old_share = 0.5 * (1 - std::pow(0.999, kSteps));
    for (std::size_t i = 0; i < after.size(); ++i)
      CHECK(after[i] ==
            doctest::Approx((old_share * before[i] + 0.5 * weights[i]) / (old_share + 0.5)).epsilon(1e-4));
  });
}

TEST_CASE("the power of a moment is the product of the decay rates that it has seen") {
  Checkpoint checkpoint = checkpoint_of(job_of(0.99, 0), 5);
  const job::JobSpec changed = job_of(0.5, 0);
  correct_powers(checkpoint, decays_of(changed));
  test::run_trainers(changed, 1, [&](test::TrainedRank& rank) {
    test::resume_from(&checkpoint, 5, rank);
    const auto power = [&](const std::string& ending) {
      return rank.trainer.storage().read(kWeight + ending).front();
    };
    CHECK(power(".beta1_pow") == doctest::Approx(std::pow(0.99, 5) * 0.5));
    CHECK(power(".beta2_pow") == doctest::Approx(std::pow(0.999, 6)));
    test::train_steps(rank, kBatch, 5, 6, kRate);
    CHECK(power(".beta1_pow") == doctest::Approx(std::pow(0.99, 5) * 0.25));
  });
}

TEST_CASE("powers that each rank has of its own are corrected, too") {
  Checkpoint checkpoint = {.path = "memory", .state = {.decays = {{"beta1", 0.8}}}, .files = {}};
  const PlainTensors tensors = {
      {"w.beta1_pow.0", {{1}, {0.64F}}}, {"w.beta1_pow.12", {{1}, {0.8F}}}, {"w.1", {{1}, {1}}}};
  checkpoint.files.emplace(kRankStatesFile, parse_safetensors(format_tensors(tensors), "memory"));
  correct_powers(checkpoint, {{"beta1", 0.4}});
  const auto value = [&](const char* name) {
    return to_floats(checkpoint.files.at(kRankStatesFile).tensors.at(name)).front();
  };
  CHECK(value("w.beta1_pow.0") == doctest::Approx(0.32));
  CHECK(value("w.beta1_pow.12") == doctest::Approx(0.4));
  CHECK(value("w.1") == 1);
}

TEST_CASE("a checkpoint of the same decay rates, or of an older fleetrun, stays as it is") {
  const job::JobSpec job = job_of(0.9, 0);
  Checkpoint checkpoint = checkpoint_of(job, 1);
  const auto power = [&] {
    return to_floats(checkpoint.files.at(kOptimizerFile).tensors.at(kWeight + ".beta1_pow")).front();
  };
  const float before = power();
  correct_powers(checkpoint, decays_of(job));
  CHECK(power() == before);
  checkpoint.state.decays.clear();
  correct_powers(checkpoint, decays_of(job_of(0.5, 0)));
  CHECK(power() == before);
}

}  // namespace
}  // namespace fleetrun::runtime::correct_powers_test
