#include <doctest/doctest.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "runtime/kernels/device.h"
#include "runtime/passes/passes.h"
#include "runtime/training/trainer/trainer.h"
#include "support/built_model.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::recompute_test {
namespace {

using Lines = std::vector<std::string>;

const std::string kValues =
    "feed x f32[2,3]\n"
    "feed d@GRAD f32[2,3]\n"
    "activation a f32[2,3]\n"
    "activation b f32[2,3]\n"
    "activation c f32[2,3]\n"
    "activation d f32[2,3]\n"
    "activation c@GRAD f32[2,3]\n"
    "activation b@GRAD f32[2,3]\n"
    "activation a@GRAD f32[2,3]\n"
    "activation x@GRAD f32[2,3]\n";
const std::string kForward =
    "relu x=x -> y=a {} forward\n"
    "relu x=a -> y=b {} forward\n"
    "relu x=b -> y=c {} forward\n"
    "relu x=c -> y=d {} forward\n";

job::StrategySpec keeping(Lines checkpoints) {
  job::StrategySpec strategy;
  strategy.recompute = true;
  strategy.recompute_configs.checkpoints = std::move(checkpoints);
  return strategy;
}

TEST_CASE("what is between two checkpoints is made again in front of the gradients that read it") {
  const test::PassResult result = test::run_pass(recompute,
                                                 kValues + kForward +
                                                     "relu_grad y=d dy=d@GRAD -> dx=c@GRAD {} backward\n"
                                                     "relu_grad y=c dy=c@GRAD -> dx=b@GRAD {} backward\n"
                                                     "relu_grad y=b dy=b@GRAD -> dx=a@GRAD {} backward\n"
                                                     "relu_grad y=a dy=a@GRAD -> dx=x@GRAD {} backward\n",
                                                 keeping({"c"}));
  CHECK(result.text == kValues +
                           "activation a.again f32[2,3]\n"
                           "activation b.again f32[2,3]\n" +
                           kForward +
                           "relu_grad y=d dy=d@GRAD -> dx=c@GRAD {} backward\n"
                           "relu_grad y=c dy=c@GRAD -> dx=b@GRAD {} backward\n"
                           "relu x=x -> y=a.again {} backward\n"
                           "relu x=a.again -> y=b.again {} backward\n"
                           "relu_grad y=b.again dy=b@GRAD -> dx=a@GRAD {} backward\n"
                           "relu_grad y=a.again dy=a@GRAD -> dx=x@GRAD {} backward\n");
  CHECK(result.messages ==
        Lines{"recompute: 2 of 4 forward ops are run again, in 1 segments; checkpoints: c"});
}

TEST_CASE("a checkpoint by which not the whole forward pass goes is refused, with those that can be chosen") {
  const std::string branches =
      "feed x f32[2,3]\n"
      "activation a f32[2,3]\n"
      "activation b f32[2,3]\n"
      "activation c f32[2,3]\n"
      "activation d f32[2,3]\n"
      "activation a@GRAD f32[2,3]\n"
      "relu x=x -> y=a {} forward\n"
      "relu x=a -> y=b {} forward\n"
      "elementwise_add x=a y=b -> sum=c {} forward\n"
      "relu x=c -> y=d {} forward\n"
      "relu_grad y=a dy=x -> dx=a@GRAD {} backward\n";
  try {
    test::run_pass(recompute, branches, keeping({"b"}));
    FAIL("it was taken");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(
        error.message() ==
        "strategy.recompute_configs.checkpoints has \"b\", wanted values by which the whole forward pass goes: a, c");
  }
}

TEST_CASE("ResNet-50 chooses its checkpoints among the ends of its blocks and of the stem") {
  const test::BuiltModel built = test::build_model(job::ModelName::resnet50, 102, 1, keeping({}));
  REQUIRE(!built.messages.empty());
  const std::string& told = built.messages.back();
  CAPTURE(told);
  CHECK(told.starts_with("recompute: "));
  CHECK(built.count("conv2d") > 53 + 30);
  CHECK(built.count("conv2d") <= 53 + 53);
}

Executor const& trained(Trainer& trainer, const std::vector<float>& images,
                        const std::vector<std::int32_t>& labels) {
  for (int step = 0; step < 3; ++step) trainer.step({images.data(), labels.data()}, 0.1);
  return trainer.executor();
}

TEST_CASE("with recompute a net learns the same with less memory, running statistics included") {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.model.dropout = 0.5;
  job.data.batch_size = 8;
  job.strategy.cudnn_exhaustive_search = false;  // algorithms differ in the scratch memory that they take
  const ModelFacts facts = {.input_shape = {3, 16, 16}, .classes = 10};
  std::vector<float> images(std::size_t{8} * 3 * 16 * 16);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  const std::vector<std::int32_t> labels = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  Trainer plain(job, facts, *device, *solo);
  job.strategy.recompute = true;
  Trainer saving(job, facts, *device, *solo);
  const Executor& before = trained(plain, images, labels);
  const Executor& after = trained(saving, images, labels);
  CHECK(after.schedule().arena_bytes < before.schedule().arena_bytes / 2);
  const Program& program = before.program();
  for (const Value& value : program.values) {
    if (value.kind != ValueKind::parameter && value.kind != ValueKind::state) continue;
    CAPTURE(value.name);
    CHECK(plain.storage().read(value.name) == saving.storage().read(value.name));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::recompute_test
