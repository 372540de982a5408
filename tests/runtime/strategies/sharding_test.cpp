// strategy.sharding changes where optimizer states, gradients and parameters are, never what is learned.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/owned_tensors.h"
#include "support/resumed_training.h"
#include "support/slowdown.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::sharding_test {
namespace {

constexpr int kBatch = 4;  // of a rank
constexpr double kRate = 0.05;

struct Sharding {
  int ranks = 2;
  int stage = 0;  // 0: none
  std::optional<int> degree = std::nullopt;
};

job::JobSpec job_with(job::ModelName model, const Sharding& sharding) {
  job::JobSpec job;
  job.model.name = model;
  job.model.hidden = {24, 16};
  job.data.batch_size = kBatch;
  job.optimizer.weight_decay = 1e-4;
  job.strategy.sharding = sharding.stage > 0;
  if (job.strategy.sharding) job.strategy.sharding_configs.stage = sharding.stage;
  job.strategy.sharding_configs.sharding_degree = sharding.degree;
  return job;
}

// Of all ranks, on rank 0.
PlainTensors all_weights(test::TrainedRank& rank, Weights which = Weights::trained) {
  return collect_weights(rank.trainer.whole_program(), rank.trainer.storage(), rank.communicator, which);
}

PlainTensors train(const job::JobSpec& job, int ranks, int steps) {
  PlainTensors weights;
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, steps, kRate);
    PlainTensors own = all_weights(rank);
    if (rank.communicator.rank() == 0) weights = std::move(own);
  });
  return weights;
}

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// The largest difference of any tensor, in parts of its norm.
double distance(const PlainTensors& a, const PlainTensors& b) {
  double most = 0;
  for (const auto& [name, tensor] : a) {
    std::vector<float> difference(tensor.values.size());
    std::transform(tensor.values.begin(), tensor.values.end(), b.at(name).values.begin(), difference.begin(),
                   std::minus<float>());
    most = std::max(most, norm(difference) / std::max(norm(tensor.values), 1e-3));
  }
  return most;
}

bool is_same(const PlainTensors& a, const PlainTensors& b) { return format_tensors(a) == format_tensors(b); }

// Without sharding, but with gradients that are summed in groups of 2 ranks first.
job::JobSpec job_in_groups(job::ModelName model) {
  job::JobSpec job = job_with(model, {});
  job.strategy.use_hierarchical_allreduce = true;
  job.strategy.hierarchical_allreduce_inter_nranks = 2;
  return job;
}

TEST_CASE("sharding: stages 1 to 3 learn what plain data parallel training learns") {
  constexpr int kSteps = testing::kSlowdown > 1 ? 4 : 20;
  for (const job::ModelName model : {job::ModelName::lenet, job::ModelName::resnet20})
    for (const int ranks : {1, 2, 4}) {
      const PlainTensors plain = train(job_with(model, {ranks}), ranks, kSteps);
      for (const int stage : {1, 2, 3}) {
        CAPTURE(static_cast<int>(model));
        CAPTURE(ranks);
        CAPTURE(stage);
        CHECK(distance(plain, train(job_with(model, {ranks, stage}), ranks, kSteps)) < 1e-5);
      }
    }
}

TEST_CASE("sharding: groups of ranks learn the bits of a training that sums gradients in these groups") {
  constexpr int kSteps = testing::kSlowdown > 1 ? 4 : 20;
  for (const job::ModelName model : {job::ModelName::lenet, job::ModelName::resnet20}) {
    const PlainTensors plain = train(job_in_groups(model), 4, kSteps);
    for (const int stage : {1, 2, 3}) {
      CAPTURE(static_cast<int>(model));
      CAPTURE(stage);
      CHECK(is_same(plain, train(job_with(model, {4, stage, 2}), 4, kSteps)));
    }
  }
}

TEST_CASE(
    "sharding: on two ranks every optimizer learns the same bits, with clipping, averages and merged gradients") {
  constexpr int kSteps = 6;
  for (const job::OptimizerName name :
       {job::OptimizerName::sgd, job::OptimizerName::momentum, job::OptimizerName::adam,
        job::OptimizerName::adamw, job::OptimizerName::lars, job::OptimizerName::lamb})
    for (const bool half : {false, true}) {
      const auto job_of = [&](int stage) {
        job::JobSpec job = job_with(job::ModelName::mlp, {2, stage});
        job.optimizer.name = name;
        job.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.1};
        job.optimizer.ema_decay = 0.5;
        job.strategy.gradient_merge = true;
        job.strategy.gradient_merge_configs.k_steps = 2;
        job.strategy.fp16_allreduce = half;
        return job;
      };
      const PlainTensors plain = train(job_of(0), 2, kSteps);
      for (const int stage : {1, 2, 3}) {
        CAPTURE(static_cast<int>(name));
        CAPTURE(half);
        CAPTURE(stage);
        CHECK(is_same(plain, train(job_of(stage), 2, kSteps)));
      }
    }
}

TEST_CASE("sharding: with amp, stages 1 to 3 learn the same bits") {
  if (make_cpu_device()->narrow_types().empty()) return;
  const auto job_of = [](int stage) {
    job::JobSpec job = job_with(job::ModelName::resnet20, {2, stage});
    job.strategy.amp = true;
    job.strategy.recompute = true;
    return job;
  };
  const PlainTensors plain = train(job_of(0), 2, 4);
  for (const int stage : {1, 2, 3}) CHECK(is_same(plain, train(job_of(stage), 2, 4)));
}

TEST_CASE("sharding: groups of ranks work beside the other switches of communication") {
  struct Switch {
    void (*turn)(job::StrategySpec&);
    job::ModelName model = job::ModelName::mlp;
  };
  const std::vector<Switch> switches = {
      {[](job::StrategySpec& s) { s.nccl_comm_num = 2; }},
      {[](job::StrategySpec& s) { s.sync_nccl_allreduce = false; }},
      {[](job::StrategySpec& s) { s.execution_strategy.num_threads = 3; }},
      {[](job::StrategySpec& s) { s.build_strategy.fuse_broadcast_ops = true; }},
      {[](job::StrategySpec& s) { s.build_strategy.enable_sequential_execution = true; }},
      {[](job::StrategySpec& s) { s.build_strategy.enable_backward_optimizer_op_deps = false; }},
      {[](job::StrategySpec& s) { s.sync_batch_norm = true; }, job::ModelName::resnet20},
  };
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const auto job_of = [&](const Sharding& sharding) {
      job::JobSpec job = job_with(switches[i].model, sharding);
      job.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.1};
      switches[i].turn(job.strategy);
      return job;
    };
    const PlainTensors plain = train(job_of({4}), 4, 2);
    for (const int stage : {1, 2, 3}) {
      CAPTURE(i);
      CAPTURE(stage);
      CHECK(distance(plain, train(job_of({4, stage, 2}), 4, 2)) < 1e-5);
    }
  }
}

double test_loss(test::TrainedRank& rank) {
  const test::StepSamples samples(1000, kBatch * rank.communicator.size());
  rank.trainer.begin_evaluation();
  rank.trainer.evaluate(samples.part(kBatch * rank.communicator.rank()));
  return rank.trainer.finish_evaluation().loss;
}

TEST_CASE("sharding: evaluations use all parameters, or all averages") {
  for (const bool averages : {false, true}) {
    std::vector<double> losses;
    for (const Sharding& sharding : {Sharding{4, 0}, {4, 1}, {4, 2}, {4, 3}, {4, 3, 2}}) {
      job::JobSpec job = job_with(job::ModelName::resnet20, sharding);
      job.optimizer.ema_decay = 0.5;
      job.optimizer.ema_evaluate = averages;
      test::run_trainers(job, 4, [&](test::TrainedRank& rank) {
        rank.trainer.share_parameters();
        test::train_steps(rank, kBatch, 0, 2, kRate);
        const double loss = test_loss(rank);
        if (rank.communicator.rank() == 0) losses.push_back(loss);
      });
    }
    for (const double loss : losses) CHECK(loss == doctest::Approx(losses.front()).epsilon(1e-5));
  }
}

// Weights after kSteps steps; the training goes on from a snapshot after kSaved steps, if it has one, or makes one.
struct Resumed {
  PlainTensors weights;
  Snapshot saved;
};
constexpr int kSaved = 2, kSteps = 5;

Resumed resume(const Sharding& sharding, const Snapshot* from) {
  job::JobSpec job = job_with(job::ModelName::mlp, sharding);
  job.optimizer.name = job::OptimizerName::adam;
  job.optimizer.ema_decay = 0.5;
  Resumed found;
  test::run_trainers(job, sharding.ranks, [&](test::TrainedRank& rank) {
    const bool is_first = rank.communicator.rank() == 0;
    if (from == nullptr) {
      rank.trainer.share_parameters();
      test::train_steps(rank, kBatch, 0, kSaved, kRate);
      Snapshot saved = test::snapshot_after(rank, kSaved);
      if (is_first) found.saved = std::move(saved);
    } else {
      test::resume_from(*from, rank);
    }
    test::train_steps(rank, kBatch, kSaved, kSteps, kRate);
    PlainTensors weights = all_weights(rank, Weights::averaged);
    if (is_first) found.weights = std::move(weights);
  });
  return found;
}

TEST_CASE(
    "sharding: a checkpoint goes on in any stage, in any groups and without sharding to the same bits") {
  const std::array<Sharding, 4> ways = {Sharding{2, 0}, {2, 1}, {2, 2}, {2, 3}};
  const Resumed plain = resume(ways[0], nullptr);
  for (const Sharding& from : ways) {
    const Resumed whole = resume(from, nullptr);
    CHECK(is_same(whole.weights, plain.weights));
    for (const Sharding& to : ways) {
      CAPTURE(from.stage);
      CAPTURE(to.stage);
      CHECK(is_same(resume(to, &whole.saved).weights, plain.weights));
    }
  }
}

TEST_CASE("sharding: a checkpoint of two ranks goes on with four, in groups or not, as without sharding") {
  const Resumed saved = resume({2, 3}, nullptr);
  const PlainTensors plain = resume({4, 0}, &saved.saved).weights;
  for (const int stage : {1, 2, 3})
    for (const std::optional<int> degree : {std::optional<int>(), std::optional<int>(2)}) {
      CAPTURE(stage);
      CHECK(distance(plain, resume({4, stage, degree}, &saved.saved).weights) < 1e-5);
    }
}

TEST_CASE("sharding: pretrained weights reach the ranks that keep them, and averages begin with them") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const PlainTensors weights = train(job_with(job::ModelName::mlp, {1}), 1, 3);
  save_weights(path, weights);
  for (const int stage : {1, 3}) {
    job::JobSpec job = job_with(job::ModelName::mlp, {2, stage});
    job.model.pretrained = path;
    job.optimizer.ema_decay = 0.5;
    test::run_trainers(job, 2, [&](test::TrainedRank& rank) {
      rank.trainer.start_from_pretrained(job);
      rank.trainer.share_parameters();
      for (const Weights which : {Weights::trained, Weights::averaged}) {
        const PlainTensors found = all_weights(rank, which);
        if (rank.communicator.rank() == 0) CHECK(is_same(found, weights));
      }
    });
  }
}

TEST_CASE("sharding: stage 3 keeps on each rank about 1/ranks of what a training keeps") {
  const auto kept_bytes = [](const Sharding& sharding) {
    std::size_t most = 0;
    std::vector<std::size_t> bytes(static_cast<std::size_t>(sharding.ranks));
    test::run_trainers(job_with(job::ModelName::resnet20, sharding), sharding.ranks,
                       [&](test::TrainedRank& rank) {
                         const Storage& storage = rank.trainer.storage();
                         bytes[static_cast<std::size_t>(rank.communicator.rank())] =
                             storage.parameter_bytes() + storage.gradient_bytes();
                       });
    for (const std::size_t of_rank : bytes) most = std::max(most, of_rank);
    return static_cast<double>(most);
  };
  CHECK(kept_bytes({4, 3}) / kept_bytes({4, 0}) < 0.3);
}

}  // namespace
}  // namespace fleetrun::runtime::sharding_test
