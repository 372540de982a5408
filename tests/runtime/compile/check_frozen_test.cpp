#include "runtime/compile/check_frozen.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/checkpoint/weights.h"
#include "runtime/data/expect_error.h"
#include "runtime/graph/builder.h"
#include "support/leave_out.h"
#include "support/small_training.h"

namespace fleetrun::runtime::check_frozen_test {
namespace {

constexpr int kBatch = 4;
constexpr int kSteps = 3;

job::JobSpec job_of(job::ModelName model, std::vector<std::string> frozen) {
  job::JobSpec job;
  job.model.name = model;
  job.model.freeze = std::move(frozen);
  job.data.batch_size = kBatch;
  return job;
}

// All weights and running statistics of each rank, at the start and at the end.
struct Trained {
  test::Weights start, end;
};

test::Weights all_weights(const Trainer& trainer) {
  test::Weights weights;
  const Program& program = trainer.executor().program();
  for (const ValueId id : weights_of(program))
    weights[program.value(id).name] = trainer.storage().read(program.value(id).name);
  return weights;
}

std::vector<Trained> train(const job::JobSpec& job, int ranks) {
  std::vector<Trained> of_rank(static_cast<std::size_t>(ranks));
  test::run_trainers(job, ranks, [&](test::TrainedRank& rank) {
    Trained& own = of_rank[static_cast<std::size_t>(rank.communicator.rank())];
    rank.trainer.share_parameters();
    own.start = all_weights(rank.trainer);
    test::train_steps(rank, kBatch, 0, kSteps, 0.05);
    rank.trainer.begin_evaluation();
    own.end = all_weights(rank.trainer);
  });
  return of_rank;
}

// Frozen layers keep their weights and running statistics to the bit, and all others change and stay finite.
void check_only_others_train(const job::JobSpec& job, int ranks) {
  const std::vector<Trained> trained = train(job, ranks);
  for (const auto& weight : trained.front().end) {
    const std::string& name = weight.first;
    const auto& values = weight.second;
    CAPTURE(name);
    const bool kept = values == trained.front().start.at(name);
    CHECK(kept == is_frozen(job.model.freeze, name));
    CHECK(std::isfinite(values.front()));
    CHECK(values == trained.back().end.at(name));
  }
}

TEST_CASE("a name freezes its layer, a pattern freezes every layer that it matches") {
  CHECK(is_frozen({"conv1"}, "conv1.weight"));
  CHECK(is_frozen({"layer1"}, "layer1.0.conv1.weight"));
  CHECK(is_frozen({"layer1*"}, "layer1.0.conv1.weight"));
  CHECK(is_frozen({"layer?.0"}, "layer2.0.bn1.bias"));
  CHECK(is_frozen({"fc.bias"}, "fc.bias"));
  CHECK_FALSE(is_frozen({"conv1"}, "layer1.0.conv1.weight"));
  CHECK_FALSE(is_frozen({"conv1"}, "conv10.weight"));
  CHECK_FALSE(is_frozen({}, "conv1.weight"));
}

TEST_CASE("frozen layers keep their weights to the bit, and the others train") {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    check_only_others_train(job_of(job::ModelName::lenet, {"c1", "f1.bias"}), ranks);
    check_only_others_train(job_of(job::ModelName::resnet20, {"conv1", "bn1", "layer1*"}), ranks);
    check_only_others_train(job_of(job::ModelName::resnet20, {"conv1", "bn1", "layer?"}), ranks);
  }
}

TEST_CASE("frozen layers agree with the switches of the strategy") {
  job::JobSpec job = job_of(job::ModelName::resnet20, {"conv1", "bn1", "layer1"});
  SUBCASE("fused batch norms") {
    job.strategy.build_strategy.fuse_bn_act_ops = true;
    job.strategy.build_strategy.enable_auto_fusion = true;
  }
  SUBCASE("recompute") { job.strategy.recompute = true; }
  SUBCASE("mixed precision") {
    if (make_cpu_device()->narrow_types().empty()) LEAVE_OUT("this processor computes nothing in bf16");
    job.strategy.amp = true;
  }
  SUBCASE("sync_batch_norm") { job.strategy.sync_batch_norm = true; }
  SUBCASE("owners") { job.strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce; }
  SUBCASE("fused updates") { job.strategy.build_strategy.fuse_all_optimizer_ops = true; }
  SUBCASE("moving averages, clipping and decay") {
    job.optimizer.ema_decay = 0.5;
    job.optimizer.ema_evaluate = true;
    job.optimizer.weight_decay = 0.01;
    job.optimizer.gradient_clip = {job::ClipBy::global_norm, 0.1};
  }
  check_only_others_train(job, 2);
}

TEST_CASE("a frozen layer is a layer whose learning rate is 0") {
  const job::JobSpec frozen = job_of(job::ModelName::lenet, {"c1", "c2"});
  job::JobSpec slow = job_of(job::ModelName::lenet, {});
  slow.optimizer.learning_rate_factors = {{"c", 0.0}};
  CHECK(train(frozen, 1).front().end == train(slow, 1).front().end);
}

void check_refused(const std::vector<std::string>& frozen, const std::string& text) {
  check_error(ErrorKind::config, text, [&] { train(job_of(job::ModelName::resnet20, frozen), 1); });
}

TEST_CASE("model.freeze names what it asks for in vain") {
  check_refused({"conv1", "conv9"}, R"(model.freeze has "conv9", wanted the name of a layer)");
  check_refused({"conv9"}, "the layers are conv1, bn1, layer1, layer2, layer3, fc");
  check_refused({"bn1.running_mean"}, R"(model.freeze has "bn1.running_mean", wanted the name of a layer)");
  check_refused({"*"}, "model.freeze leaves no parameter to train");
  check_refused(
      {"layer1.0.bn1"},
      "model.freeze has the batch norm layer1.0.bn1, and a layer before it or its own bias is trained");
}

}  // namespace
}  // namespace fleetrun::runtime::check_frozen_test
