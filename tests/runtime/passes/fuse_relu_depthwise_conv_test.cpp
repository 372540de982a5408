#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

#include "runtime/compile/build_program.h"
#include "runtime/exec/schedule.h"
#include "runtime/graph/program_text.h"
#include "runtime/passes/passes.h"
#include "support/fused_bits.h"
#include "support/small_net.h"

namespace fleetrun::runtime::fuse_relu_depthwise_conv_test {
namespace {

using test::count_ops;
using Lines = std::vector<std::string>;

const std::string kValues =
    "feed x f32[2,4,5,5]\n"
    "feed dy f32[2,4,3,3]\n"
    "parameter w f32[4,1,3,3] constant 1.0\n"
    "activation r f32[2,4,5,5]\n"
    "activation y f32[2,4,3,3]\n"
    "activation r@GRAD f32[2,4,5,5]\n"
    "activation x@GRAD f32[2,4,5,5]\n"
    "gradient w@GRAD f32[4,1,3,3] of w\n";
const std::string kWindow = "dilations=[1,1]; groups=4; ";
const std::string kMoved = "paddings=[1,1]; strides=[2,2]";
const std::string kForward = kWindow + kMoved + "} forward\n";
const std::string kRelu = "relu x=x -> y=r {} forward\n";
const std::string kConv = "conv2d x=r w=w -> y=y {" + kForward;
const std::string kWeights = " -> dw=w@GRAD {" + kWindow + kMoved + "; weight_shape=[4,1,3,3]} backward\n";
const std::string kInput = " {" + kWindow + "input_shape=[2,4,5,5]; " + kMoved + "} backward\n";
const std::string kBackward = "conv2d_grad_input dy=dy w=w -> dx=r@GRAD" + kInput +
                              "conv2d_grad_weights x=r dy=dy" + kWeights +
                              "relu_grad y=r dy=r@GRAD -> dx=x@GRAD {} backward\n";

std::string fused(const std::string& text) {
  return print_program(test::after_pass(parse_program(text, all_ops()), fuse_relu_depthwise_conv).program,
                       all_ops());
}

TEST_CASE(
    "fuse_relu_depthwise_conv: a relu goes into the depthwise convolution that reads it, forward and backward") {
  CHECK(fused(kValues + kRelu + kConv + kBackward) ==
        kValues + "relu_depthwise x=x w=w -> y=y {" + kForward + "relu_depthwise_grad_weights x=x dy=dy" +
            kWeights + "relu_depthwise_grad_input dy=dy w=w x=x -> dx=x@GRAD" + kInput);
}

TEST_CASE(
    "fuse_relu_depthwise_conv: a relu that others read, that is fetched, or whose convolution mixes channels stays") {
  const std::string other = "activation twice f32[2,4,5,5]\n";
  const std::string add = "elementwise_add x=x y=r -> sum=twice {} forward\n";
  for (const std::string& text :
       {kValues + other + kRelu + kConv + add, kValues + "fetch r\n" + kRelu + kConv,
        kValues + other + kRelu + kConv + kBackward +
            "elementwise_add x=x y=r@GRAD -> sum=twice {} backward\n"})
    CHECK(fused(text) == text);
  std::string mixed = kValues + kRelu + kConv;
  mixed.replace(mixed.find("w f32[4,1,"), 10, "w f32[4,2,");
  mixed.replace(mixed.find("@GRAD f32[4,1,"), 14, "@GRAD f32[4,2,");
  mixed.replace(mixed.find("groups=4"), 8, "groups=2");
  CHECK(fused(mixed) == mixed);
}

TEST_CASE(
    "fuse_relu_depthwise_conv: the 13 depthwise convolutions of MobileNet read a relu; ResNet-50 has none") {
  job::JobSpec job;
  job.strategy.build_strategy.fuse_bn_add_act_ops = false;
  job.data.batch_size = 2;
  const auto program = [&](job::ModelName name) {
    job.model.name = name;
    return build_training_program(job, {.input_shape = {3, 224, 224}, .classes = 102}, all_ops(), {});
  };
  const test::PassRun mobile =
      test::after_pass(program(job::ModelName::mobilenet_v1), fuse_relu_depthwise_conv);
  CHECK(mobile.messages == Lines{"fuse_relu_depthwise_conv: detected 13 subgraphs",
                                 "fuse_relu_depthwise_conv: detected 13 subgraphs in the backward part"});
  CHECK(count_ops(mobile.program, "relu_depthwise") == 13);
  CHECK(count_ops(mobile.program, "relu_depthwise_grad_weights") == 13);
  CHECK(count_ops(mobile.program, "relu_depthwise_grad_input") == 13);
  CHECK(count_ops(mobile.program, "relu") == 27 - 13);
  CHECK(count_ops(mobile.program, "conv2d") == 27 - 13);
  const test::PassRun resnet = test::after_pass(program(job::ModelName::resnet50), fuse_relu_depthwise_conv);
  CHECK(resnet.messages.front() == "fuse_relu_depthwise_conv: detected 0 subgraphs");
}

// A depthwise convolution between two others, of channels that fill blocks or do not, with a bias.
Program net(std::int64_t channels, std::int64_t side, std::int64_t kernel, std::int64_t stride) {
  Program program;
  Builder builder(program, all_ops());
  ValueId x = builder.parameter("image", {3, 4, side, side + 1}, {});
  x = builder.op("relu", "relu", {{"x", test::convolve(builder, "before", x, channels, 3)}});
  Attributes attributes = test::convolution(stride, kernel / 2);
  attributes["groups"] = channels;
  x = builder.op("depthwise", "conv2d",
                 {{"x", x},
                  {"w", builder.parameter("depthwise.w", {channels, 1, kernel, kernel}, {})},
                  {"b", builder.parameter("depthwise.b", {channels}, {})}},
                 attributes);
  x = test::convolve(builder, "after", x, 4, 1);
  program.fetches.push_back(x);
  const Shape& shape = program.value(x).shape;
  const ValueId w = builder.parameter("fc.w", {2, shape[1] * shape[2] * shape[3]}, {});
  const ValueId large = builder.op("fc", "fc", {{"x", x}, {"w", w}});
  const ValueId logits = builder.op("logits", "scale", {{"x", large}}, {{"scale", 1e-3}, {"bias", 0.0}});
  const auto ce =
      builder.add({.type = "softmax_with_cross_entropy",
                   .inputs = {{"logits", logits}, {"label", builder.feed("label", {3}, DType::i32)}},
                   .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", ce[1]}}));
  return program;
}

test::Floats as_floats(const std::vector<std::uint32_t>& bits) {
  test::Floats floats(bits.size());
  std::transform(bits.begin(), bits.end(), floats.begin(),
                 [](std::uint32_t b) { return std::bit_cast<float>(b); });
  return floats;
}

TEST_CASE(
    "fuse_relu_depthwise_conv: a fused depthwise convolution agrees with the one that stands alone to 1e-5 of the norm") {
  const auto device = make_cpu_device();
  for (const auto& [channels, side, kernel, stride] : {std::array<std::int64_t, 4>{32, 14, 3, 1},
                                                       {32, 14, 3, 2},
                                                       {20, 9, 3, 1},
                                                       {7, 11, 5, 3},
                                                       {16, 75, 3, 1}}) {
    INFO(channels << " channels of " << side << " rows, window " << kernel << ", stride " << stride);
    const Program alone = net(channels, side, kernel, stride);
    const Program together = test::after_pass(alone, fuse_relu_depthwise_conv).program;
    REQUIRE(count_ops(together, "relu_depthwise_grad_input") == 1);
    const auto wanted = test::bits_of(alone, *device), got = test::bits_of(together, *device);
    for (const auto& [name, bits] : wanted) {
      INFO(name);
      const test::Floats want = as_floats(bits);
      test::Floats apart = as_floats(got.at(name));
      for (std::size_t i = 0; i < apart.size(); ++i) apart[i] -= want[i];
      CHECK(test::norm(apart) <= 1e-5 * test::norm(want));
    }
  }
}

// As they lie on a device that keeps every value plain.
Schedule schedule_of(const Program& program) {
  return plan_schedule(program, std::vector<OpMemory>(program.ops.size()));
}

// In the arena x takes the place of relu(x), which is what the way back needs else.
TEST_CASE(
    "fuse_relu_depthwise_conv: relu(x) and its gradient are no longer among the activations of MobileNet, of which none takes more") {
  job::JobSpec job;
  job.model.name = job::ModelName::mobilenet_v1;
  job.data.batch_size = 2;
  job.strategy.build_strategy.fuse_relu_depthwise_conv = false;
  const Program alone =
      build_training_program(job, {.input_shape = {3, 64, 64}, .classes = 10}, all_ops(), {});
  const Program together = test::after_pass(alone, fuse_relu_depthwise_conv).program;
  std::size_t gone = 0;
  for (const Op& op : alone.ops)
    if (op.type == "conv2d" && std::get<std::int64_t>(op.attributes.at("groups")) > 1)
      gone += 2 * alone.value(op.inputs[0]).bytes();
  const Schedule before = schedule_of(alone), after = schedule_of(together);
  CHECK(before.unshared_bytes - after.unshared_bytes == gone);
  CHECK(after.arena_bytes <= before.arena_bytes);
}

}  // namespace
}  // namespace fleetrun::runtime::fuse_relu_depthwise_conv_test
