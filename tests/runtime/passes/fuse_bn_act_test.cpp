#include <doctest/doctest.h>

#include "runtime/compile/build_program.h"
#include "runtime/graph/program_text.h"
#include "runtime/passes/passes.h"
#include "support/fused_bits.h"
#include "support/small_net.h"

namespace fleetrun::runtime::fuse_bn_act_test {
namespace {

using test::count_ops;

const std::string kValues =
    "feed x f32[2,1,2,2]\n"
    "feed dy f32[2,1,2,2]\n"
    "parameter w f32[1] constant 1.0\n"
    "parameter b f32[1] constant 0.0\n"
    "state m f32[1] constant 0.0\n"
    "state v f32[1] constant 1.0\n"
    "activation bn f32[2,1,2,2]\n"
    "activation bm f32[1]\n"
    "activation bv f32[1]\n"
    "activation relu f32[2,1,2,2]\n"
    "activation bn@GRAD f32[2,1,2,2]\n"
    "activation x@GRAD f32[2,1,2,2]\n"
    "gradient w@GRAD f32[1] of w\n"
    "gradient b@GRAD f32[1] of b\n";
const std::string kAttributes = " {epsilon=1e-05; momentum=0.9; training=true} forward\n";
const std::string kNorm =
    "batch_norm x=x scale=w bias=b mean=m variance=v -> y=bn mean=m variance=v batch_mean=bm batch_variance=bv" +
    kAttributes;
const std::string kRelu = "relu x=bn -> y=relu {} forward\n";
const std::string kMask = "relu_grad y=relu dy=dy -> dx=bn@GRAD {} backward\n";
const std::string kNormGrad =
    "batch_norm_grad x=x dy=bn@GRAD scale=w batch_mean=bm batch_variance=bv -> dx=x@GRAD dscale=w@GRAD "
    "dbias=b@GRAD {epsilon=1e-05} backward\n";

std::string fused(const std::string& text) {
  return print_program(test::after_pass(parse_program(text, all_ops()), fuse_bn_act).program, all_ops());
}

TEST_CASE("a batch norm and its relu become one op, and so do their gradients") {
  CHECK(
      fused(kValues + kNorm + kRelu + kMask + kNormGrad) ==
      kValues +
          "batch_norm_act x=x scale=w bias=b mean=m variance=v -> y=relu mean=m variance=v batch_mean=bm batch_variance=bv" +
          kAttributes +
          "batch_norm_act_grad x=x dy=dy scale=w bias=b batch_mean=bm batch_variance=bv -> dx=x@GRAD "
          "dscale=w@GRAD dbias=b@GRAD {epsilon=1e-05} backward\n");
}

TEST_CASE("a batch norm that others read, that is fetched, or that evaluates stays alone") {
  const std::string other = "activation twice f32[2,1,2,2]\n";
  const std::string add = "elementwise_add x=bn y=relu -> sum=twice {} forward\n";
  CHECK(fused(kValues + other + kNorm + kRelu + add) == kValues + other + kNorm + kRelu + add);
  CHECK(fused(kValues + "fetch bn\n" + kNorm + kRelu) == kValues + "fetch bn\n" + kNorm + kRelu);
  const std::string evaluation =
      "batch_norm x=x scale=w bias=b mean=m variance=v -> y=bn {epsilon=1e-05; momentum=0.9; training=false} forward\n";
  CHECK(fused(kValues + evaluation + kRelu) == kValues + evaluation + kRelu);
}

TEST_CASE("where others read the gradient between them, the backward part stays as it is") {
  const std::string other = "activation twice f32[2,1,2,2]\n";
  const std::string add = "elementwise_add x=bn@GRAD y=dy -> sum=twice {} backward\n";
  const Program program =
      test::after_pass(parse_program(kValues + other + kNorm + kRelu + kMask + add + kNormGrad, all_ops()),
                       fuse_bn_act)
          .program;
  CHECK(count_ops(program, "batch_norm_act") == 1);
  CHECK(count_ops(program, "relu_grad") == 1);
  CHECK(count_ops(program, "batch_norm_grad") == 1);
}

TEST_CASE("33 batch norms of ResNet-50 are followed by their relu, and all 27 of MobileNet") {
  job::JobSpec job;
  job.strategy.build_strategy.fuse_bn_add_act_ops = false;
  job.data.batch_size = 2;
  const auto program = [&](job::ModelName name) {
    job.model.name = name;
    return build_training_program(job, {.input_shape = {3, 224, 224}, .classes = 102}, all_ops(), {});
  };
  const test::PassRun resnet = test::after_pass(program(job::ModelName::resnet50), fuse_bn_act);
  CHECK(resnet.messages ==
        std::vector<std::string>{"fuse_bn_act: detected 33 subgraphs",
                                 "fuse_bn_act: detected 33 subgraphs in the backward part"});
  CHECK(count_ops(resnet.program, "batch_norm") == 53 - 33);
  CHECK(count_ops(resnet.program, "relu") == 16);
  const test::PassRun mobile = test::after_pass(program(job::ModelName::mobilenet_v1), fuse_bn_act);
  CHECK(count_ops(mobile.program, "batch_norm_act") == 27);
  CHECK(count_ops(mobile.program, "batch_norm_act_grad") == 27);
}

Program net(std::int64_t channels, bool convolved) {
  Program program;
  Builder builder(program, all_ops());
  ValueId x = builder.parameter("image", {3, channels, 9, 7}, {});
  if (convolved) x = test::convolve(builder, "conv", x, channels, 3);
  test::end_net(builder, builder.op("relu", "relu", {{"x", test::normalise(builder, "bn", x)}}), channels);
  return program;
}

TEST_CASE("a fused batch norm and its gradient have the bits of those that stand alone") {
  test::check_fused_bits(net, fuse_bn_act, [](const Program& together) {
    REQUIRE(count_ops(together, "batch_norm_act_grad") == 1);
  });
}

}  // namespace
}  // namespace fleetrun::runtime::fuse_bn_act_test
