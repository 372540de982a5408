#include <doctest/doctest.h>

#include <cmath>

#include "support/counted_training.h"
#include "support/rank_simulation.h"

namespace fleetrun::runtime::fp16_allreduce_test {
namespace {

constexpr int kBatch = 4;             // of a rank
constexpr double kRounding = 0x1p-8;  // of bf16, of a value
constexpr double kRate = 0.05;
constexpr int kSteps = testing::kSlowdown > 1 ? 4 : 20;

job::JobSpec job_of(job::ModelName model, bool half, bool merges = false) {
  job::JobSpec job;
  job.model.name = model;
  job.optimizer.name = job::OptimizerName::sgd;
  job.data.batch_size = kBatch;
  job.strategy.fp16_allreduce = half;
  job.strategy.gradient_merge = merges;
  job.strategy.gradient_merge_configs.k_steps = 2;
  return job;
}

// Of each element, the mean gradient of the ranks and the mean of the absolute values of their gradients.
struct MeanGradients {
  test::Tensors mean, absolute;
};

MeanGradients mean_gradients(test::SoloGradients& solo, const test::Weights& weights, int step, int ranks) {
  MeanGradients found;
  const test::StepSamples samples(step, kBatch * ranks);
  for (int rank = 0; rank < ranks; ++rank)
    for (const auto& [name, gradient] : solo.at(weights, samples.part(kBatch * rank))) {
      test::Tensor &mean = found.mean[name], &absolute = found.absolute[name];
      mean.resize(gradient.size());
      absolute.resize(gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        mean[i] += gradient[i] / ranks;
        absolute[i] += std::abs(gradient[i]) / ranks;
      }
    }
  return found;
}

// How many elements the rounding of the sum changes, and how many of them farther than it may.
struct Changes {
  std::size_t all = 0, beyond = 0;
};

void compare(const test::Weights& before, const test::Weights& after, const MeanGradients& gradients,
             int ranks, Changes& changes) {
  for (const auto& [name, values] : before)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double wanted = values[i] - kRate * gradients.mean.at(name)[i],
                   absolute = gradients.absolute.at(name)[i];
      const double difference = std::abs(static_cast<double>(after.at(name)[i]) - wanted);
      const double of_f32 = 0x1p-22 * (std::abs(static_cast<double>(values[i])) + absolute);
      changes.all += difference > of_f32 ? 1 : 0;
      changes.beyond += difference > kRate * ranks * kRounding * absolute + of_f32 ? 1 : 0;
    }
}

TEST_CASE("fp16_allreduce changes the sum of n ranks by at most n * 2^-8 of the sum of the absolute values") {
  for (const job::ModelName model : test::simulated_models())
    for (const int ranks : {2, 4}) {
      CAPTURE(ranks);
      const job::JobSpec job = job_of(model, true);
      const test::WeightsByStep seen = test::watch_training(job, ranks, kSteps, [](int) { return kRate; });
      test::SoloGradients solo(job);
      Changes changes;
      for (int step = 0; step < kSteps; ++step) {
        const test::Weights& before = seen[static_cast<std::size_t>(step)][0];
        compare(before, seen[static_cast<std::size_t>(step) + 1][0],
                mean_gradients(solo, before, step, ranks), ranks, changes);
      }
      CHECK(changes.beyond == 0);
      CHECK(changes.all > 1000);
    }
}

// What rank 0 tells the other ranks in two steps.
std::vector<std::string> calls_of(const job::JobSpec& job) {
  std::vector<std::string> calls;
  test::run_counted(job, [&](const test::CountedRank& counted) {
    const test::StepSamples samples(0, 2 * kBatch);
    for (int step = 0; step < 2; ++step) counted.trainer.step(samples.part(kBatch * counted.rank), 0.01);
    if (counted.rank == 0) calls = counted.calls.take();
  });
  return calls;
}

TEST_CASE("the ranks send as many elements in bf16 as without fp16_allreduce in f32, half the bytes") {
  job::JobSpec whole = job_of(job::ModelName::lenet, false), half = job_of(job::ModelName::lenet, true);
  whole.strategy.fuse_all_reduce_ops = half.strategy.fuse_all_reduce_ops = false;
  std::vector<std::string> wanted = calls_of(whole);
  REQUIRE(wanted.size() == 16);  // 8 parameters, 2 steps
  for (std::string& line : wanted) line.replace(line.find(" f32"), 4, " bf16");
  CHECK(calls_of(half) == wanted);
}

TEST_CASE("with gradient_merge, merged gradients travel in bf16, once for all batches") {
  const std::vector<std::string> calls = calls_of(job_of(job::ModelName::lenet, true, true));
  REQUIRE(calls.size() == 1);
  CHECK(calls.front().find(" bf16 ") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::runtime::fp16_allreduce_test
