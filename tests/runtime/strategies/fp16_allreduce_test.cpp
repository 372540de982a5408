#include <doctest/doctest.h>

#include <cmath>

#include "support/counted_training.h"
#include "support/small_training.h"

namespace fleetrun::runtime::fp16_allreduce_test {
namespace {

constexpr int kBatch = 4;             // of a rank
constexpr double kRounding = 0x1p-8;  // of bf16, of a value
constexpr double kRate = 1;

job::JobSpec job_of(bool half, bool merges = false) {
  job::JobSpec job;
  job.model.name = job::ModelName::lenet;
  job.optimizer.name = job::OptimizerName::sgd;
  job.data.batch_size = kBatch;
  job.strategy.fp16_allreduce = half;
  job.strategy.gradient_merge = merges;
  job.strategy.gradient_merge_configs.k_steps = 2;
  return job;
}

test::Weights after_one_step(bool half, int ranks) {
  test::Weights weights;
  test::run_trainers(job_of(half), ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, 1, kRate);
    if (rank.communicator.rank() == 0) weights = test::weights_of(rank.trainer);
  });
  return weights;
}

// Of each element, the sum over the ranks of the absolute values of their parts of the mean gradient.
test::Weights absolute_gradients(int ranks) {
  test::Weights sums;
  test::run_trainers(job_of(false), 1, [&](test::TrainedRank& one) {
    const test::StepSamples samples(0, kBatch * ranks);
    const Program& program = one.trainer.executor().program();
    for (int rank = 0; rank < ranks; ++rank) {
      one.trainer.step(samples.part(kBatch * rank), 0);
      for (const ValueId id : program.of_kind(ValueKind::parameter)) {
        const std::vector<float> gradient =
            one.trainer.storage().read(program.value(program.gradient_of(id)).name);
        std::vector<float>& sum = sums[program.value(id).name];
        sum.resize(gradient.size());
        for (std::size_t i = 0; i < sum.size(); ++i)
          sum[i] += std::abs(gradient[i]) / static_cast<float>(ranks);
      }
    }
  });
  return sums;
}

TEST_CASE("fp16_allreduce changes the sum of n ranks by at most n * 2^-8 of the sum of the absolute values") {
  for (const int ranks : {2, 4}) {
    const test::Weights exact = after_one_step(false, ranks), rounded = after_one_step(true, ranks);
    const test::Weights gradients = absolute_gradients(ranks);
    std::size_t beyond = 0, changed = 0;
    for (const auto& [name, values] : exact)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double difference =
            std::abs(static_cast<double>(values[i]) - static_cast<double>(rounded.at(name)[i]));
        const double of_f32 =
            0x1p-22 * (std::abs(static_cast<double>(values[i])) + static_cast<double>(gradients.at(name)[i]));
        const double bound = kRate * ranks * kRounding * static_cast<double>(gradients.at(name)[i]) + of_f32;
        beyond += difference > bound ? 1 : 0;
        changed += difference > 0 ? 1 : 0;
      }
    CHECK(beyond == 0);
    CHECK(changed > 1000);
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
  job::JobSpec whole = job_of(false), half = job_of(true);
  whole.strategy.fuse_all_reduce_ops = half.strategy.fuse_all_reduce_ops = false;
  std::vector<std::string> wanted = calls_of(whole);
  REQUIRE(wanted.size() == 16);  // 8 parameters, 2 steps
  for (std::string& line : wanted) line.replace(line.find(" f32"), 4, " bf16");
  CHECK(calls_of(half) == wanted);
}

TEST_CASE("with gradient_merge, merged gradients travel in bf16, once for all batches") {
  const std::vector<std::string> calls = calls_of(job_of(true, true));
  REQUIRE(calls.size() == 1);
  CHECK(calls.front().find(" bf16 ") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::runtime::fp16_allreduce_test
