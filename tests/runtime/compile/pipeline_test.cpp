// What all passes together make of FleetX's ResNet-50, whose logs were published.
#include "runtime/compile/pipeline.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/built_model.h"

namespace fleetrun::runtime::pipeline_test {
namespace {

using test::BuiltModel;

BuiltModel resnet50(const job::StrategySpec& strategy, int world_size = 8) {
  return test::build_model(job::ModelName::resnet50, 102, world_size, strategy);
}

std::string published_line(int before, int after) {
  return "Find all_reduce operators: " + std::to_string(before) +
         ". To make the speed faster, some all_reduce ops are fused during training, after fusion, the number of all_reduce ops is " +
         std::to_string(after) + ".";
}

TEST_CASE("161 gradients travel in 5 messages, as published, and in 6 of 16 MB") {
  const BuiltModel usual = resnet50({});
  CHECK(usual.count("all_reduce") == 5);
  CHECK(usual.tells(published_line(161, 5)));
  const BuiltModel smaller = resnet50({.fuse_grad_size_in_MB = 16});
  CHECK(smaller.count("all_reduce") == 6);
  CHECK(smaller.tells(published_line(161, 6)));
}

TEST_CASE("without fusion every gradient travels by itself; one rank sends nothing") {
  const BuiltModel apart = resnet50({.fuse_all_reduce_ops = false});
  CHECK(apart.count("all_reduce") == 161);
  CHECK(apart.program.contiguous.empty());
  CHECK(resnet50({}, 1).count("all_reduce") == 0);
}

TEST_CASE("161 updates become one, and the published line says so") {
  job::StrategySpec strategy;
  CHECK(resnet50(strategy).count("momentum") == 161);
  strategy.build_strategy.fuse_all_optimizer_ops = true;
  const BuiltModel fused = resnet50(strategy);
  CHECK(fused.count("momentum") == 1);
  CHECK(fused.tells(
      "Find momentum operators : 161, and 161 for dense gradients. To make the speed faster, those optimization are "
      "fused during training."));
}

TEST_CASE("messages of gradients go by the communicators in turn") {
  const BuiltModel built = resnet50({.nccl_comm_num = 2});
  std::vector<std::int64_t> numbers;
  for (const Op& op : built.program.ops)
    if (op.type == "all_reduce")
      numbers.push_back(op.attributes.count("communicator") > 0
                            ? std::get<std::int64_t>(op.attributes.at("communicator"))
                            : 0);
  CHECK(numbers == std::vector<std::int64_t>{0, 1, 0, 1, 0});
}

TEST_CASE("find_unused_parameters says on which parameters the loss depends") {
  job::StrategySpec strategy;
  strategy.find_unused_parameters = true;
  CHECK(resnet50(strategy).tells("find_unused_parameters: the loss depends on all 161 parameters"));
}

TEST_CASE("dgc exchanges parts of the 52 large gradients of a ResNet-50 and sums the others") {
  job::StrategySpec strategy;
  strategy.dgc = true;
  const BuiltModel built = resnet50(strategy);
  CHECK(built.count("dgc_exchange") == 52);
  CHECK(built.count("dgc_momentum") == 52);
  CHECK(built.count("momentum") == 109);
}

TEST_CASE("with localsgd no gradient is summed") {
  job::StrategySpec strategy;
  strategy.localsgd = true;
  const BuiltModel built = resnet50(strategy);
  CHECK(built.count("all_reduce") == 0);
  CHECK(built.count("average_parameters") == 1);
}

TEST_CASE("a device that lacks ops of the job is refused, with their names") {
  job::JobSpec job;
  job.model = {.name = job::ModelName::mlp, .hidden = {8}};
  job.optimizer.name = job::OptimizerName::adamw;
  job.optimizer.ema_decay = 0.5;
  OpNames device;
  for (const auto& entry : all_ops()) device.insert(entry.first);
  const auto build = [&] {
    build_training_program(job, {.input_shape = {1, 4, 4}, .classes = 3}, all_ops(), {.device_ops = &device});
  };
  CHECK_NOTHROW(build());
  device.erase("adamw");
  device.erase("average_weights");
  CHECK_THROWS_WITH_AS(
      build(), "this device has no kernels in this build for ops of the job: adamw, average_weights", Error);
}

TEST_CASE("the program can be seen after each pass that ran") {
  job::JobSpec job;
  job.model = {.name = job::ModelName::mlp, .hidden = {8}};
  std::vector<std::string> passes;
  build_training_program(
      job, {.input_shape = {1, 4, 4}, .classes = 3}, all_ops(),
      {.world_size = 2, .watcher = [&](const std::string& pass, const Program&) { passes.push_back(pass); }});
  CHECK(passes.front() == "built");
  CHECK(std::find(passes.begin(), passes.end(), "fuse_all_reduce") != passes.end());
  CHECK(std::find(passes.begin(), passes.end(), "fuse_optimizers") == passes.end());
}

}  // namespace
}  // namespace fleetrun::runtime::pipeline_test
