// Where updates run, and in which pieces, does not change what optimizers, clipping, averages and merged gradients compute.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/small_training.h"

namespace fleetrun::runtime::same_bits_test {
namespace {

constexpr int kRanks = 2;  // with more, messages of another size are summed in another order
constexpr int kBatch = 4;
constexpr int kSteps = 6;

struct Trained {
  test::Weights weights, averages;
  bool operator==(const Trained&) const = default;
};

std::vector<Trained> train(const job::JobSpec& job) {
  std::vector<Trained> of_rank(kRanks);
  test::run_trainers(job, kRanks, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, kSteps, 0.05);
    Trained& own = of_rank[static_cast<std::size_t>(rank.communicator.rank())];
    own.weights = test::weights_of(rank.trainer);
    for (const auto& [name, values] : own.weights)
      own.averages[name] = rank.trainer.storage().read(name + ".ema");
  });
  return of_rank;
}

job::JobSpec job_with(job::OptimizerName optimizer) {
  job::JobSpec job;
  job.model.name = job::ModelName::mlp;
  job.model.hidden = {24, 16};
  job.data.batch_size = kBatch;
  job.optimizer.name = optimizer;
  job.optimizer.weight_decay = 0.01;
  job.optimizer.exclude_from_weight_decay = {".b_0"};
  job.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.1};
  job.optimizer.learning_rate_factors = {{"f1", 0.5}};
  job.optimizer.ema_decay = 0.5;
  job.strategy.gradient_merge = true;
  job.strategy.gradient_merge_configs.k_steps = 2;
  return job;
}

struct Switch {
  const char* name;
  void (*turn)(job::StrategySpec&);
};

const std::vector<Switch> kSwitches = {
    {"fused updates", [](job::StrategySpec& s) { s.build_strategy.fuse_all_optimizer_ops = true; }},
    {"owners", [](job::StrategySpec& s) { s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce; }},
    {"owners with fused broadcasts",
     [](job::StrategySpec& s) {
       s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
       s.build_strategy.fuse_broadcast_ops = true;
     }},
    {"each gradient by itself", [](job::StrategySpec& s) { s.fuse_all_reduce_ops = false; }},
    {"early updates on three threads",
     [](job::StrategySpec& s) {
       s.build_strategy.enable_backward_optimizer_op_deps = false;
       s.execution_strategy.num_threads = 3;
       s.nccl_comm_num = 2;
       s.sync_nccl_allreduce = false;
     }},
};

void check_switches(const job::JobSpec& job) {
  const std::vector<Trained> plain = train(job);
  CHECK(plain[0] == plain[1]);
  CHECK(plain[0].weights != plain[0].averages);
  for (const Switch& one : kSwitches) {
    CAPTURE(one.name);
    job::JobSpec switched = job;
    one.turn(switched.strategy);
    CHECK((train(switched) == plain));
  }
}

TEST_CASE("fused and divided updates give the same weights and averages with clipping and merged gradients") {
  for (const job::OptimizerName name :
       {job::OptimizerName::sgd, job::OptimizerName::momentum, job::OptimizerName::adam,
        job::OptimizerName::adamw, job::OptimizerName::lars, job::OptimizerName::lamb}) {
    CAPTURE(static_cast<int>(name));
    check_switches(job_with(name));
  }
}

TEST_CASE("the same holds for gradients in half precision") {
  job::JobSpec job = job_with(job::OptimizerName::lars);
  job.strategy.fp16_allreduce = true;
  check_switches(job);
  if (make_cpu_device()->narrow_types().empty()) return;
  job.strategy.fp16_allreduce = false;
  job.strategy.amp = true;
  check_switches(job);
}

}  // namespace
}  // namespace fleetrun::runtime::same_bits_test
