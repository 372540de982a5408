#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "support/counted_training.h"
#include "support/resumed_training.h"

namespace fleetrun::runtime::gradient_merge_test {
namespace {

constexpr int kWholeBatch = 64;
constexpr int kMerged = 4;
constexpr int kUpdates = 5;
constexpr double kRate = 0.05;

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

double distance(const test::Weights& a, const test::Weights& b) {
  double most = 0;
  for (const auto& [name, values] : a) {
    std::vector<float> difference(values.size());
    std::transform(values.begin(), values.end(), b.at(name).begin(), difference.begin(), std::minus<>());
    most = std::max(most, norm(difference) / norm(values));
  }
  return most;
}

job::JobSpec job_of(job::ModelName model, int batch, int k_steps) {
  job::JobSpec job;
  job.model.name = model;
  job.model.hidden = {48, 32};
  job.data.batch_size = batch;
  job.strategy.gradient_merge = k_steps > 1;
  job.strategy.gradient_merge_configs.k_steps = k_steps;
  return job;
}

// After kUpdates updates, each from the same 64 samples however many ranks and steps they are spread over.
test::Weights train(const job::JobSpec& job, int ranks) {
  const int batch = job.data.batch_size, steps = kWholeBatch / batch / ranks;
  test::Weights weights;
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    for (int step = 0; step < kUpdates * steps; ++step) {
      const test::StepSamples samples(step / steps, kWholeBatch);
      rank.trainer.step(samples.part((step % steps * ranks + rank.communicator.rank()) * batch), kRate);
    }
    if (rank.communicator.rank() == 0) weights = test::weights_of(rank.trainer);
  });
  return weights;
}

TEST_CASE("4 batches of 16 that are merged train as one batch of 64, on one rank and on two") {
  for (const job::ModelName model : {job::ModelName::mlp, job::ModelName::lenet}) {
    const test::Weights whole = train(job_of(model, kWholeBatch, 1), 1);
    CHECK(distance(whole, train(job_of(model, kWholeBatch / kMerged, kMerged), 1)) < 1e-6);
    CHECK(distance(whole, train(job_of(model, kWholeBatch / kMerged / 2, kMerged), 2)) < 1e-6);
  }
}

TEST_CASE("without avg, merged gradients are summed") {
  job::JobSpec sum = job_of(job::ModelName::mlp, kWholeBatch / kMerged, kMerged);
  sum.optimizer.name = job::OptimizerName::sgd;
  job::JobSpec mean = sum;
  sum.strategy.gradient_merge_configs.avg = false;
  sum.optimizer.learning_rate_factors = {{"", 1.0 / kMerged}};
  CHECK(distance(train(mean, 1), train(sum, 1)) < 1e-6);
}

TEST_CASE("ranks talk to each other in every k_steps-th step only, and weights move then") {
  const job::JobSpec job = job_of(job::ModelName::mlp, 4, 3);
  test::run_counted(job, [&](const test::CountedRank& counted) {
    const test::StepSamples samples(0, 8);
    test::Weights before = test::weights_of(counted.trainer);
    for (int step = 1; step <= 6; ++step) {
      counted.trainer.step(samples.part(4 * counted.rank), kRate);
      test::Weights after = test::weights_of(counted.trainer);
      CHECK((step % 3 == 0) == !counted.calls.take().empty());
      CHECK((step % 3 == 0) == (before != after));
      before = std::move(after);
    }
  });
}

TEST_CASE("a checkpoint between two updates has the merged gradients of each rank") {
  const job::JobSpec job = job_of(job::ModelName::mlp, 4, 3);
  Snapshot saved;
  std::vector<std::vector<float>> merged(2);
  const std::string name = "f1.bias.merged";
  test::run_trainers(job, 2, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, 4, 0, 2, kRate);
    merged[static_cast<std::size_t>(rank.communicator.rank())] = rank.trainer.storage().read(name);
    Snapshot own = test::snapshot_after(rank, 2);
    if (rank.communicator.rank() == 0) saved = std::move(own);
  });
  CHECK(merged[0] != merged[1]);
  REQUIRE(saved.files.count(kMergedFile) == 1);
  CHECK(saved.files.at(kMergedFile).at(name + ".0").values == merged[0]);
  CHECK(saved.files.at(kMergedFile).at(name + ".1").values == merged[1]);
}

TEST_CASE(
    "with another k_steps, merged gradients are left out, and the next update has that many later batches") {
  Snapshot saved;
  test::run_trainers(job_of(job::ModelName::mlp, 4, 3), 1, [&](test::TrainedRank& rank) {
    test::train_steps(rank, 4, 0, 1, kRate);
    saved = test::snapshot_after(rank, 1);
  });
  const job::JobSpec job = job_of(job::ModelName::mlp, 4, 2);
  test::Weights resumed, anew;
  test::run_trainers(job, 1, [&](test::TrainedRank& rank) {
    Checkpoint checkpoint = test::as_checkpoint(saved);
    CHECK(
        leave_out_merged_gradients(checkpoint, {.merged = {.k_steps = 2}}, {}) ==
        "the merged gradients of 1 batch are left out: k_steps is 2 and was 3; the next update comes after 2 batches");
    test::resume_from(&checkpoint, 1, rank);
    const test::Weights before = test::weights_of(rank.trainer);
    test::train_steps(rank, 4, 1, 2, kRate);
    CHECK(test::weights_of(rank.trainer) == before);
    test::train_steps(rank, 4, 2, 3, kRate);
    resumed = test::weights_of(rank.trainer);
  });
  test::run_trainers(job, 1, [&](test::TrainedRank& rank) {  // the weights had not moved before
    rank.trainer.start_at(1, 0);
    test::train_steps(rank, 4, 1, 3, kRate);
    anew = test::weights_of(rank.trainer);
  });
  CHECK(resumed == anew);
}

TEST_CASE("merged gradients of an older checkpoint, or for a training that merges none, are left out") {
  Snapshot saved;
  test::run_trainers(job_of(job::ModelName::mlp, 4, 3), 1, [&](test::TrainedRank& rank) {
    test::train_steps(rank, 4, 0, 2, kRate);
    saved = test::snapshot_after(rank, 2);
  });
  Checkpoint merged = test::as_checkpoint(saved), unmerged = test::as_checkpoint(saved);
  CHECK(leave_out_merged_gradients(merged, saved.state, {}).empty());
  CHECK(merged.files.contains(kMergedFile));
  CHECK(
      leave_out_merged_gradients(unmerged, {}, {}) ==
      "the merged gradients of 2 batches are left out: this training merges none; the next update comes after 1 batch");
  CHECK_FALSE(unmerged.files.contains(kMergedFile));
  merged.state.merged = {};
  CHECK(
      leave_out_merged_gradients(merged, saved.state, {}) ==
      "the merged gradients are left out: the checkpoint does not say how many batches they are from; the next update comes after 3 batches");
}

TEST_CASE("a checkpoint after an update has no merged gradients") {
  test::run_trainers(job_of(job::ModelName::mlp, 4, 2), 1, [&](test::TrainedRank& rank) {
    test::train_steps(rank, 4, 0, 2, kRate);
    CHECK(test::snapshot_after(rank, 2).files.size() == 2);
  });
}

}  // namespace
}  // namespace fleetrun::runtime::gradient_merge_test
