// Switches of the strategy change how a training is run, never what it learns: alone and in any combination.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "job/spec/settle_strategy.h"
#include "runtime/kernels/device.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"
#include "support/slowdown.h"
#include "support/soak.h"

namespace fleetrun::runtime::numbers_test {
namespace {

constexpr int kRanks = 2;
constexpr int kBatch = 4;  // of a rank
constexpr int kSide = 8;
constexpr int kSteps = testing::kSlowdown > 1 ? 4 : 10;
constexpr ModelFacts kFacts = {.input_shape = {3, kSide, kSide}, .classes = 10};
constexpr std::size_t kPixels = std::size_t{3} * kSide * kSide;

using Parameters = std::map<std::string, std::vector<float>>;

struct Samples {
  std::vector<float> images = std::vector<float>(kBatch * kPixels);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);

  Samples(int step, int rank, int ranks) {
    const auto stream = static_cast<std::uint64_t>(step * ranks + rank);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = unit_float(philox(1, stream, i)[0]) - 0.5F;
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(philox(2, stream, i)[0] % 10);
  }
};

struct Setting {
  int ranks = kRanks;
  int threads = 1;  // of a rank
};

// Of rank 0, after kSteps steps with as many communicators as the strategy says.
Parameters train(job::ModelName model, const job::StrategySpec& strategy, const Setting& setting = {}) {
  const int ranks = setting.ranks;
  job::JobSpec job;
  job.model.name = model;
  job.optimizer.weight_decay = 1e-4;
  job.data.batch_size = kBatch;
  job.strategy = job::settle_strategy(strategy, {.all = ranks, .of_node = ranks}).strategy;
  job.strategy.cudnn_exhaustive_search = false;  // the algorithm that rounds alike in every program
  std::vector<std::vector<std::unique_ptr<comm::Communicator>>> worlds;  // by communicator, by rank
  for (int i = 0; i <= job.strategy.nccl_comm_num; ++i) worlds.push_back(comm::make_thread_world(ranks));
  Parameters parameters;
  testing::run_ranks(ranks, [&](int rank) {
    std::vector<comm::Communicator*> of_gradients;
    for (auto& world : worlds) of_gradients.push_back(world[static_cast<std::size_t>(rank)].get());
    comm::Communicator& flat = *of_gradients.back();
    of_gradients.pop_back();
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, Communicators(flat, of_gradients), {.threads = setting.threads});
    trainer.share_parameters();
    for (int step = 0; step < kSteps; ++step) {
      const Samples samples(step, rank, ranks);
      trainer.step({samples.images.data(), samples.labels.data()}, 0.05);
    }
    if (rank != 0) return;
    const Program& program = trainer.executor().program();
    for (const ValueId id : program.of_kind(ValueKind::parameter))
      parameters[program.value(id).name] = trainer.storage().read(program.value(id).name);
  });
  return parameters;
}

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// The largest difference of any parameter, in parts of its norm.
double distance(const Parameters& a, const Parameters& b) {
  double most = 0;
  for (const auto& [name, values] : a) {
    std::vector<float> difference(values.size());
    std::transform(values.begin(), values.end(), b.at(name).begin(), difference.begin(), std::minus<float>());
    most = std::max(most, norm(difference) / std::max(norm(values), 1e-3));
  }
  return most;
}

struct Switch {
  const char* name;
  void (*turn)(job::StrategySpec&);
  bool same_bits = true;
};

const std::vector<Switch>& switches() {
  using Spec = job::StrategySpec;
  static const std::vector<Switch> all = {
      {"nothing is fused",
       [](Spec& s) {
         s.fuse_all_reduce_ops = false;
         s.build_strategy.fuse_bn_add_act_ops = false;
       }},
      {"batch norms with activations", [](Spec& s) { s.build_strategy.fuse_bn_act_ops = true; }},
      {"additions with activations",
       [](Spec& s) {
         s.build_strategy.fuse_bn_add_act_ops = false;
         s.build_strategy.fuse_elewise_add_act_ops = true;
       }},
      {"groups of elementwise ops",
       [](Spec& s) {
         s.build_strategy.fuse_bn_add_act_ops = false;
         s.build_strategy.enable_auto_fusion = true;
       }},
      {"names kept", [](Spec& s) { s.build_strategy.cache_runtime_context = true; }},
      {"memory given back", [](Spec& s) { s.execution_strategy.num_iteration_per_drop_scope = 2; }},
      {"small messages", [](Spec& s) { s.fuse_grad_size_in_MB = 0.01; }},
      {"a message for each layer", [](Spec& s) { s.fuse_grad_size_in_MB = -1; }},
      {"one message by name", [](Spec& s) { s.fuse_grad_size_in_MB = 0; }},
      {"few gradients in a message", [](Spec& s) { s.fuse_grad_size_in_TFLOPS = 3; }},
      {"a small last message", [](Spec& s) { s.last_comm_group_size_MB = 0.001; }},
      {"asynchronous sums", [](Spec& s) { s.sync_nccl_allreduce = false; }},
      {"two communicators", [](Spec& s) { s.nccl_comm_num = 2; }},
      {"three threads", [](Spec& s) { s.execution_strategy.num_threads = 3; }},
      {"program order", [](Spec& s) { s.build_strategy.enable_sequential_execution = true; }},
      {"fused updates", [](Spec& s) { s.build_strategy.fuse_all_optimizer_ops = true; }},
      {"early updates", [](Spec& s) { s.build_strategy.enable_backward_optimizer_op_deps = false; }},
      {"no place twice", [](Spec& s) { s.build_strategy.enable_inplace = false; }},
      {"made again", [](Spec& s) { s.recompute = true; }},
      {"owners", [](Spec& s) { s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce; }},
      {"owners with fused broadcasts",
       [](Spec& s) {
         s.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
         s.build_strategy.fuse_broadcast_ops = true;
       }},
  };
  return all;
}

void check_like(const Parameters& plain, const Parameters& other, bool same_bits) {
  if (same_bits)
    CHECK(plain == other);
  else
    CHECK(distance(plain, other) < 1e-5);
}

TEST_CASE("each switch alone leaves what is learned as it is") {
  const Parameters plain = train(job::ModelName::resnet20, {});
  for (const Switch& one : switches()) {
    CAPTURE(one.name);
    job::StrategySpec strategy;
    one.turn(strategy);
    check_like(plain, train(job::ModelName::resnet20, strategy), one.same_bits);
  }
}

TEST_CASE(
    "row 14: on three ranks, switches that cut the sums into other messages change the rounding at most") {
  const Setting three = {.ranks = 3};
  const Parameters plain = train(job::ModelName::lenet, {}, three);
  for (const char* const name :
       {"small messages", "a message for each layer", "one message by name", "owners"}) {
    CAPTURE(name);
    const auto one = std::find_if(switches().begin(), switches().end(),
                                  [&](const Switch& any) { return std::string(any.name) == name; });
    REQUIRE(one != switches().end());
    job::StrategySpec strategy;
    one->turn(strategy);
    check_like(plain, train(job::ModelName::lenet, strategy, three), false);
  }
}

TEST_CASE("row 15: another number of threads changes the rounding at most") {
  const Parameters plain = train(job::ModelName::lenet, {});
  for (const int threads : {2, 3}) {
    CAPTURE(threads);
    check_like(plain, train(job::ModelName::lenet, {}, {.threads = threads}), false);
  }
}

TEST_CASE("what is made again has the statistics of all ranks, too") {
  job::StrategySpec strategy;
  strategy.sync_batch_norm = true;
  const Parameters kept = train(job::ModelName::resnet20, strategy);
  strategy.recompute = true;
  CHECK(kept == train(job::ModelName::resnet20, strategy));
}

TEST_CASE("random combinations of the switches leave what is learned as it is") {
  const int combinations = testing::soak_count(testing::kSlowdown > 1 ? 5 : 50);
  const Parameters plain = train(job::ModelName::resnet20, {});
  std::mt19937 random(8);  // NOLINT: the same on every run
  for (int i = 0; i < combinations; ++i) {
    job::StrategySpec strategy;
    bool same_bits = true;
    std::string names;
    for (const Switch& one : switches()) {
      if (random() % 3 != 0) continue;
      one.turn(strategy);
      same_bits = same_bits && one.same_bits;
      names += std::string(names.empty() ? "" : ", ") + one.name;
    }
    CAPTURE(names);
    check_like(plain, train(job::ModelName::resnet20, strategy), same_bits);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::numbers_test
