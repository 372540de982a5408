// Data parallel is exact: a batch split over ranks trains the same network as the whole batch on one rank.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "job/spec/step_share.h"
#include "runtime/kernels/device.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"

namespace fleetrun::runtime::data_parallel_test {
namespace {

constexpr int kGlobalBatch = 64;
constexpr int kSteps = 20;
constexpr ModelFacts kFacts = {.input_shape = {3, 12, 12}, .classes = 10};

const std::vector<float> kClassWeights = {1, 2, 0.5, 8, 1, 0.25, 3, 1, 1, 4};

using Parameters = std::map<std::string, std::vector<float>>;

struct GlobalBatch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};

GlobalBatch make_batch(int step) {
  const std::size_t pixels = 3 * 12 * 12;
  GlobalBatch batch = {std::vector<float>(kGlobalBatch * pixels), std::vector<std::int32_t>(kGlobalBatch)};
  for (std::size_t i = 0; i < batch.images.size(); ++i)
    batch.images[i] = unit_float(philox(1, static_cast<std::uint64_t>(step), i)[0]) - 0.5F;
  for (std::size_t i = 0; i < batch.labels.size(); ++i)
    batch.labels[i] = static_cast<std::int32_t>(philox(2, static_cast<std::uint64_t>(step), i)[0] % 10);
  return batch;
}

Parameters parameters_of(const Trainer& trainer) {
  Parameters parameters;
  for (const Value& value : trainer.executor().program().values)
    if (value.kind == ValueKind::parameter) parameters[value.name] = trainer.storage().read(value.name);
  return parameters;
}

// The parameters of rank 0 after kSteps steps on `ranks` ranks.
Parameters train(job::JobSpec job, int ranks) {
  job.strategy.cudnn_exhaustive_search = false;  // other batches, other algorithms, other roundings
  job.data.batch_size = kGlobalBatch / ranks;
  Parameters parameters;
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, communicator);
    if (job.data.class_weights) trainer.weigh_classes(kClassWeights);
    trainer.share_parameters();
    for (int step = 0; step < kSteps; ++step) {
      const GlobalBatch batch = make_batch(step);
      const auto first = static_cast<std::size_t>(communicator.rank() * job.data.batch_size);
      trainer.step({batch.images.data() + first * 3 * 12 * 12, batch.labels.data() + first}, 0.05);
    }
    if (communicator.rank() == 0) parameters = parameters_of(trainer);
  });
  return parameters;
}

// The parameters of rank 0 after some steps of a global batch on `ranks` ranks.
Parameters train_shared(job::JobSpec job, int ranks, int steps = kSteps) {
  job.train.global_batch = kGlobalBatch;
  job.strategy.cudnn_exhaustive_search = false;
  Parameters parameters;
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, communicator);
    if (job.data.class_weights) trainer.weigh_classes(kClassWeights);
    trainer.share_parameters();
    const auto first = static_cast<std::size_t>(job::plan_shares(job, ranks).of(communicator.rank()).first);
    for (int step = 0; step < steps; ++step) {
      const GlobalBatch batch = make_batch(step);
      trainer.step({batch.images.data() + first * 3 * 12 * 12, batch.labels.data() + first}, 0.05);
    }
    if (communicator.rank() == 0) parameters = parameters_of(trainer);
  });
  return parameters;
}

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / norm(a);
}

void check_exact(const job::JobSpec& job) {
  const Parameters whole = train(job, 1);
  for (const int ranks : {2, 4}) {
    const Parameters split = train(job, ranks);
    for (const auto& [name, values] : whole) {
      CAPTURE(name);
      CAPTURE(ranks);
      CHECK(relative_difference(values, split.at(name)) < 1e-5);
    }
  }
}

void check_same(const Parameters& whole, const Parameters& split, double tolerance = 1e-5) {
  for (const auto& [name, values] : whole) {
    CAPTURE(name);
    CHECK(relative_difference(values, split.at(name)) < tolerance);
  }
}

job::JobSpec job_of(job::ModelName model, job::OptimizerName optimizer) {
  job::JobSpec job;
  job.model.name = model;
  job.model.hidden = {48, 32};
  job.optimizer.name = optimizer;
  job.optimizer.weight_decay = 1e-4;
  return job;
}

TEST_CASE("20 steps of 1 rank x 64, 2 x 32 and 4 x 16 give the same mlp") {
  check_exact(job_of(job::ModelName::mlp, job::OptimizerName::momentum));
}

TEST_CASE("20 steps of 1 rank x 64, 2 x 32 and 4 x 16 give the same lenet") {
  check_exact(job_of(job::ModelName::lenet, job::OptimizerName::sgd));
}

TEST_CASE("with class weights, 1, 2, 3 and 4 ranks train the same mlp, and not the one without them") {
  job::JobSpec job = job_of(job::ModelName::mlp, job::OptimizerName::momentum);
  const Parameters without = train(job, 1);
  job.data.class_weights = job::ClassWeights{.balanced = true};
  const Parameters whole = train(job, 1);
  check_exact(job);
  check_same(whole, train_shared(job, 3));
  job.strategy.sharding = true;
  job.strategy.sharding_configs.stage = 2;
  check_same(whole, train(job, 2));
  const auto& [name, values] = *whole.begin();
  CHECK(relative_difference(values, without.at(name)) > 1e-3);
}

// What rank 0 reports of the first step, of the first half of a batch.
Score first_score(job::JobSpec job, int ranks) {
  job.strategy.cudnn_exhaustive_search = false;
  job.data.batch_size = kGlobalBatch / 2;
  Score score;
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, communicator);
    trainer.weigh_classes(kClassWeights);
    trainer.share_parameters();
    const GlobalBatch batch = make_batch(0);
    const auto first = static_cast<std::size_t>(communicator.rank() * job.data.batch_size);
    trainer.step({batch.images.data() + first * 3 * 12 * 12, batch.labels.data() + first}, 0.05);
    if (communicator.rank() == 0) score = trainer.score();
  });
  return score;
}

TEST_CASE(
    "with class weights, rank 0 reports the weighted loss of its own batch, whatever the other rank has") {
  job::JobSpec job = job_of(job::ModelName::mlp, job::OptimizerName::momentum);
  job.data.class_weights = job::ClassWeights{.balanced = true};
  const Score alone = first_score(job, 1), beside_another = first_score(job, 2);
  CHECK(beside_another.loss == doctest::Approx(alone.loss).epsilon(1e-5));
  CHECK(beside_another.acc1 == alone.acc1);
}

TEST_CASE("20 steps of Adam on 1 rank x 64, 2 x 32 and 4 x 16 give the same mlp") {
  job::JobSpec job = job_of(job::ModelName::mlp, job::OptimizerName::adam);
  job.optimizer.epsilon = 0.1;  // a smaller one turns rounding of gradients near 0 into whole steps
  check_exact(job);
}

TEST_CASE("a global batch of 64 trains the same mlp and the same lenet on 1, 2, 3 and 4 ranks") {
  for (const job::ModelName model : {job::ModelName::mlp, job::ModelName::lenet}) {
    const job::JobSpec job = job_of(model, job::OptimizerName::momentum);
    const Parameters whole = train(job, 1);
    CHECK(train_shared(job, 1) == whole);
    CHECK(train_shared(job, 2) == train(job, 2));
    for (const int ranks : {3, 4}) {
      CAPTURE(ranks);
      check_same(whole, train_shared(job, ranks));
    }
  }
}

TEST_CASE("a global batch that the ranks do not divide combines with other ways to sum gradients") {
  const job::JobSpec plain = job_of(job::ModelName::mlp, job::OptimizerName::momentum);
  const Parameters whole = train(plain, 1);
  job::JobSpec job = plain;
  job.strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
  job.strategy.fuse_all_reduce_ops = false;
  check_same(whole, train_shared(job, 3));
  job = plain;
  job.strategy.fuse_all_reduce_ops = false;
  check_same(whole, train_shared(job, 3));
  job = plain;
  job.strategy.recompute = true;
  job.strategy.build_strategy.enable_sequential_execution = true;
  check_same(whole, train_shared(job, 3));
  job = plain;
  job.strategy.gradient_merge = true;
  job.strategy.gradient_merge_configs.k_steps = 2;
  check_same(train(job, 1), train_shared(job, 3));
  job = plain;
  job.strategy.fp16_allreduce = true;
  check_same(whole, train_shared(job, 3), 1e-2);  // the gradients travel in 16 bits
}

TEST_CASE("with amp, gradients have the same layouts on ranks with different shares of a global batch") {
  if (make_cpu_device()->narrow_types().empty()) return;
  for (const job::ModelName model : {job::ModelName::mlp, job::ModelName::lenet}) {
    job::JobSpec job = job_of(model, job::OptimizerName::momentum);
    job.strategy.amp = true;
    check_same(train_shared(job, 1, 1), train_shared(job, 3, 1),
               0.1);  // sums of bf16; other layouts would give 1
  }
  job::JobSpec residual = job_of(job::ModelName::resnet20, job::OptimizerName::momentum);
  residual.strategy.amp = true;
  CHECK_NOTHROW(train_shared(residual, 3, 1));
}

TEST_CASE("synchronised batch norms count the samples of each rank when the ranks do not divide the batch") {
  job::JobSpec job = job_of(job::ModelName::resnet20, job::OptimizerName::momentum);
  job.strategy.sync_batch_norm = true;
  job.strategy.build_strategy.enable_sequential_execution = true;
  // Gradients of biases are small sums of large terms, and more steps let roundings grow. A rank that counted as a third of the
  // batch, instead of 22 or 21 of 64, would be 3 % off.
  check_same(train_shared(job, 2, 1), train_shared(job, 3, 1), 1e-2);
}

TEST_CASE("several ops in flight change nothing") {
  job::JobSpec job = job_of(job::ModelName::mlp, job::OptimizerName::momentum);
  const Parameters one = train(job, 2);
  job.strategy.execution_strategy.num_threads = 3;
  CHECK(train(job, 2) == one);
}

TEST_CASE("values in place of others change nothing") {
  job::JobSpec job = job_of(job::ModelName::lenet, job::OptimizerName::momentum);
  job.model.dropout = 0.5;
  const Parameters in_place = train(job, 2);
  job.strategy.build_strategy.enable_inplace = false;
  CHECK(train(job, 2) == in_place);
}

TEST_CASE("values in place of others change nothing in a network with batch_norm") {
  job::JobSpec job = job_of(job::ModelName::resnet20, job::OptimizerName::momentum);
  const Parameters in_place = train(job, 1);
  CHECK(train(job, 1) == in_place);
  job.strategy.build_strategy.enable_inplace = false;
  CHECK(train(job, 1) == in_place);
}

TEST_CASE("fusions on one device change nothing in a residual network") {
  job::JobSpec job = job_of(job::ModelName::resnet20, job::OptimizerName::momentum);
  job::BuildStrategySpec& build = job.strategy.build_strategy;
  build.fuse_bn_add_act_ops = false;
  const Parameters plain = train(job, 2);
  build.fuse_bn_act_ops = true;
  CHECK(train(job, 2) == plain);
  build.fuse_bn_add_act_ops = true;
  CHECK(train(job, 2) == plain);
  build.fuse_bn_act_ops = false;
  CHECK(train(job, 2) == plain);
  build.fuse_bn_add_act_ops = false;
  build.fuse_elewise_add_act_ops = true;
  CHECK(train(job, 2) == plain);
  build.fuse_elewise_add_act_ops = false;
  build.enable_auto_fusion = true;
  CHECK(train(job, 2) == plain);
}

TEST_CASE("after 20 steps of a residual network all ranks hold the same bits") {
  job::JobSpec job = job_of(job::ModelName::resnet20, job::OptimizerName::momentum);
  job.data.batch_size = 8;
  std::vector<Parameters> of_rank(2);
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, communicator);
    trainer.share_parameters();
    for (int step = 0; step < kSteps; ++step) {
      const GlobalBatch batch = make_batch(step);
      const auto first = static_cast<std::size_t>(communicator.rank() * job.data.batch_size);
      trainer.step({batch.images.data() + first * 3 * 12 * 12, batch.labels.data() + first}, 0.05);
    }
    of_rank[static_cast<std::size_t>(communicator.rank())] = parameters_of(trainer);
  });
  CHECK(of_rank[0].size() == 65);
  CHECK(of_rank[0] == of_rank[1]);
}

TEST_CASE("training again with the same seed gives the same bits") {
  const job::JobSpec job = job_of(job::ModelName::mlp, job::OptimizerName::momentum);
  CHECK(train(job, 2) == train(job, 2));
}

}  // namespace
}  // namespace fleetrun::runtime::data_parallel_test
