#include <doctest/doctest.h>

#include "runtime/compile/build_program.h"
#include "runtime/graph/program_text.h"
#include "runtime/passes/passes.h"
#include "support/fused_bits.h"
#include "support/small_net.h"

namespace fleetrun::runtime::fuse_bn_add_act_test {
namespace {

using test::count_ops;

const std::string kValues =
    "feed x f32[2,1,2,2]\n"
    "feed z f32[2,1,2,2]\n"
    "feed dy f32[2,1,2,2]\n"
    "parameter w f32[1] constant 1.0\n"
    "parameter b f32[1] constant 0.0\n"
    "state m f32[1] constant 0.0\n"
    "state v f32[1] constant 1.0\n"
    "activation bn f32[2,1,2,2]\n"
    "activation bm f32[1]\n"
    "activation bv f32[1]\n"
    "activation add f32[2,1,2,2]\n"
    "activation relu f32[2,1,2,2]\n"
    "activation add@GRAD f32[2,1,2,2]\n"
    "activation other f32[2,1,2,2]\n"
    "activation x@GRAD f32[2,1,2,2]\n"
    "gradient w@GRAD f32[1] of w\n"
    "gradient b@GRAD f32[1] of b\n";
const std::string kAttributes = " {epsilon=1e-05; momentum=0.9; training=true} forward\n";
const std::string kNorm =
    "batch_norm x=x scale=w bias=b mean=m variance=v -> y=bn mean=m variance=v batch_mean=bm batch_variance=bv" +
    kAttributes;
const std::string kRelu = "relu x=add -> y=relu {} forward\n";
const std::string kBackward =
    "relu_grad y=relu dy=dy -> dx=add@GRAD {} backward\n"
    "elementwise_add x=add@GRAD y=z -> sum=other {} backward\n"
    "batch_norm_grad x=x dy=add@GRAD scale=w batch_mean=bm batch_variance=bv -> dx=x@GRAD dscale=w@GRAD "
    "dbias=b@GRAD {epsilon=1e-05} backward\n";
const std::string kFused =
    "batch_norm_add_act x=x z=z scale=w bias=b mean=m variance=v -> y=relu mean=m variance=v batch_mean=bm batch_variance=bv" +
    kAttributes;
const std::string kFusedBackward =
    "batch_norm_add_act_grad x=x y=relu dy=dy scale=w batch_mean=bm batch_variance=bv -> dx=x@GRAD "
    "dz=add@GRAD dscale=w@GRAD dbias=b@GRAD {epsilon=1e-05} backward\n"
    "elementwise_add x=add@GRAD y=z -> sum=other {} backward\n";

std::string fused(const std::string& text) {
  return print_program(test::after_pass(parse_program(text, all_ops()), fuse_bn_add_act).program, all_ops());
}

TEST_CASE("a batch norm, the addition and the relu become one op, and so do their gradients") {
  const std::string add = "elementwise_add x=bn y=z -> sum=add {} forward\n";
  CHECK(fused(kValues + kNorm + add + kRelu + kBackward) == kValues + kFused + kFusedBackward);
}

TEST_CASE("the batch norm may be either side of the addition") {
  const std::string add = "elementwise_add x=z y=bn -> sum=add {} forward\n";
  CHECK(fused(kValues + kNorm + add + kRelu + kBackward) == kValues + kFused + kFusedBackward);
}

TEST_CASE("the gradient of two branches after the block is added by the same op") {
  const std::string add = "elementwise_add x=bn y=z -> sum=add {} forward\n";
  const std::string branches = "elementwise_add x=z y=x -> sum=dy2 {} backward\n";
  const auto replaced = [](std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
  };
  const std::string values = replaced(
      kValues, "feed dy f32", "feed dy f32[2,1,2,2]\nactivation late f32[2,1,2,2]\nactivation dy2 f32");
  const std::string backward = replaced(kBackward, "dy=dy", "dy=dy2");
  CHECK(fused(values + kNorm + add + kRelu + branches + backward) ==
        values + kFused + replaced(kFusedBackward, "dy=dy", "dy=z dy_too=x"));
  SUBCASE("but not where somebody else reads the sum") {
    const std::string reader = "elementwise_add x=dy2 y=z -> sum=late {} backward\n";
    CHECK(fused(values + kNorm + add + kRelu + branches + backward + reader) ==
          values + kFused + branches + replaced(kFusedBackward, "dy=dy", "dy=dy2") + reader);
  }
}

TEST_CASE("a sum that others read stays") {
  const std::string add = "elementwise_add x=bn y=z -> sum=add {} forward\n";
  const std::string reader = "elementwise_add x=add y=relu -> sum=other {} forward\n";
  CHECK(fused(kValues + kNorm + add + kRelu + reader) == kValues + kNorm + add + kRelu + reader);
}

TEST_CASE("all 16 residual blocks of ResNet-50 are found, also after fuse_bn_act") {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet50;
  job.data.batch_size = 2;
  job.strategy.build_strategy.fuse_bn_add_act_ops = false;
  const ModelFacts facts = {.input_shape = {3, 224, 224}, .classes = 102};
  const test::PassRun run =
      test::after_pass(build_training_program(job, facts, all_ops(), {}), fuse_bn_add_act);
  CHECK(run.messages ==
        std::vector<std::string>{"fuse_bn_add_act: detected 16 subgraphs",
                                 "fuse_bn_add_act: detected 16 subgraphs in the backward part"});
  job.strategy.build_strategy.fuse_bn_add_act_ops = true;
  job.strategy.build_strategy.fuse_bn_act_ops = true;
  const Program both = build_training_program(job, facts, all_ops(), {});
  for (const char* suffix : {"", "_grad"}) {
    CHECK(count_ops(both, std::string("batch_norm_act") + suffix) == 33);
    CHECK(count_ops(both, std::string("batch_norm_add_act") + suffix) == 16);
    CHECK(count_ops(both, std::string("batch_norm") + suffix) == 4);
    CHECK(count_ops(both, std::string("relu") + suffix) == 0);
  }
}

// Two residual blocks, the second with a batch norm on both sides of its addition.
Program net(std::int64_t channels, bool convolved) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.parameter("image", {3, channels, 9, 7}, {});
  const auto branch = [&](const std::string& name, ValueId from) {
    return test::normalise(builder, name + ".bn",
                           convolved ? test::convolve(builder, name, from, channels, 3) : from);
  };
  const auto end = [&](const std::string& name, ValueId x, ValueId y) {
    return builder.op(name + ".relu", "relu",
                      {{"x", builder.op(name + ".add", "elementwise_add", {{"x", x}, {"y", y}})}});
  };
  ValueId x = end("a", branch("a", image), image);
  x = end("b", branch("b", x), branch("c", x));
  test::end_net(builder, x, channels);
  return program;
}

TEST_CASE("a fused residual block and its gradient have the bits of the ops that it is made of") {
  test::check_fused_bits(net, fuse_bn_add_act, [](const Program& together) {
    REQUIRE(count_ops(together, "batch_norm_add_act_grad") == 2);
    // Of the image's gradient; the second block's went with it.
    REQUIRE(count_ops(together, "elementwise_add") == 1);
  });
}

}  // namespace
}  // namespace fleetrun::runtime::fuse_bn_add_act_test
