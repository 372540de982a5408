#include "runtime/passes/cast_forward.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/verify.h"
#include "support/built_model.h"

namespace fleetrun::runtime::cast_forward_test {
namespace {

Attributes convolution(std::int64_t groups) {
  return {
      {"strides", Shape{1, 1}}, {"paddings", Shape{0, 0}}, {"dilations", Shape{1, 1}}, {"groups", groups}};
}

// conv bn z p logits, the loss and its mean.
Program small() {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {2, 3, 4, 4}), label = builder.feed("label", {2}, DType::i32);
  const Shape channels = {8};
  const ValueId conv = builder.op(
      "conv", "conv2d", {{"x", image}, {"w", builder.parameter("w", {8, 3, 1, 1}, {})}}, convolution(1));
  const ValueId norm = builder
                           .add({.type = "batch_norm",
                                 .inputs = {{"x", conv},
                                            {"scale", builder.parameter("scale", channels, {})},
                                            {"bias", builder.parameter("bias", channels, {})},
                                            {"mean", builder.state("mean", channels, {}, kNone)},
                                            {"variance", builder.state("variance", channels, {}, kNone)}},
                                 .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", true}},
                                 .name = "bn"})
                           .front();
  const ValueId z = builder.op("z", "relu", {{"x", norm}});
  const ValueId pooled = builder.op("p", "pool2d", {{"x", z}},
                                    {{"kind", std::string("average")},
                                     {"kernel", Shape{4, 4}},
                                     {"strides", Shape{1, 1}},
                                     {"paddings", Shape{0, 0}},
                                     {"exclusive", true}});
  const ValueId logits =
      builder.op("logits", "fc", {{"x", pooled}, {"w", builder.parameter("v", {5, 8}, {})}});
  const ValueId loss = builder
                           .add({.type = "softmax_with_cross_entropy",
                                 .inputs = {{"logits", logits}, {"label", label}},
                                 .name = "ce"})
                           .at(1);
  builder.op("hits", "accuracy", {{"x", logits}, {"label", label}});
  builder.op("loss", "mean", {{"x", loss}});
  return program;
}

// A convolution of all channels, one of each channel by itself, a rectifier.
Program with_depthwise() {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {2, 4, 4, 4});
  const ValueId u = builder.parameter("u", {4, 4, 1, 1}, {}), w = builder.parameter("w", {4, 1, 1, 1}, {});
  const ValueId a = builder.op("a", "conv2d", {{"x", image}, {"w", u}}, convolution(1));
  const ValueId b = builder.op("b", "conv2d", {{"x", a}, {"w", w}}, convolution(4));
  builder.op("c", "relu", {{"x", b}});
  return program;
}

struct Cast {
  Program program;
  CastCounts counts;

  explicit Cast(const job::AmpSpec& amp = {}, Program before = small()) : program(std::move(before)) {
    counts = cast_forward(program, all_ops(), amp, DType::bf16);
    verify(program, all_ops());
  }

  // "conv2d bf16, batch_norm bf16, ...": each op by what it makes, casts by their outputs' names.
  std::string ops() const {
    std::string text;
    for (const Op& op : program.ops) {
      const Value& made = program.value(op.outputs.front());
      text +=
          fmt::format("{}{}", text.empty() ? "" : ", ",
                      op.type == "cast" ? made.name : fmt::format("{} {}", op.type, describe(made.dtype)));
    }
    return text;
  }
};

TEST_CASE("white ops and those behind them compute in bf16, black ones in f32, and each value is cast once") {
  const Cast cast;
  CHECK(
      cast.ops() ==
      "image.cast_bf16, w.cast_bf16, conv2d bf16, batch_norm bf16, relu bf16, pool2d bf16, v.cast_bf16, fc bf16, "
      "logits.cast_f32, softmax_with_cross_entropy f32, accuracy f32, mean f32");
  CHECK(cast.counts.narrow == 5);
  CHECK(cast.counts.ops == 8);
  CHECK(cast.counts.casts == 4);
  for (const char* name :
       {"scale", "bias", "mean", "variance", "bn.batch_mean", "bn.batch_variance", "w", "v", "image"})
    CHECK(cast.program.value(cast.program.find(name)).dtype == DType::f32);
}

TEST_CASE("an op on the custom black list goes back to f32, and so do the gray ones after it") {
  const Cast cast({.custom_black_list = {"pool2d"}});
  CHECK(
      cast.ops() ==
      "image.cast_bf16, w.cast_bf16, conv2d bf16, batch_norm bf16, relu bf16, z.cast_f32, pool2d f32, p.cast_bf16, "
      "v.cast_bf16, fc bf16, logits.cast_f32, softmax_with_cross_entropy f32, accuracy f32, mean f32");
  CHECK(
      Cast({.custom_black_list = {"batch_norm"}}).ops() ==
      "image.cast_bf16, w.cast_bf16, conv2d bf16, conv.cast_f32, batch_norm f32, relu f32, pool2d f32, p.cast_bf16, "
      "v.cast_bf16, fc bf16, logits.cast_f32, softmax_with_cross_entropy f32, accuracy f32, mean f32");
}

TEST_CASE("PaddlePaddle's names of an op are that op") {
  for (const char* name : {"mul", "matmul", "matmul_v2", "fc"}) {
    const Cast cast({.custom_black_list = {name}});
    CHECK(
        cast.ops() ==
        "image.cast_bf16, w.cast_bf16, conv2d bf16, batch_norm bf16, relu bf16, pool2d bf16, p.cast_f32, fc f32, "
        "softmax_with_cross_entropy f32, accuracy f32, mean f32");
  }
}

TEST_CASE("an op on the custom white list takes bf16 whatever it reads") {
  const Cast cast({.custom_white_list = {"relu"}, .custom_black_list = {"batch_norm"}});
  CHECK(
      cast.ops() ==
      "image.cast_bf16, w.cast_bf16, conv2d bf16, conv.cast_f32, batch_norm f32, bn.y.cast_bf16, relu bf16, pool2d bf16, "
      "v.cast_bf16, fc bf16, logits.cast_f32, softmax_with_cross_entropy f32, accuracy f32, mean f32");
}

TEST_CASE("what reads or makes a value of custom_black_varnames stays f32") {
  CHECK(
      Cast({.custom_black_varnames = {"v"}}).ops() ==
      "image.cast_bf16, w.cast_bf16, conv2d bf16, batch_norm bf16, relu bf16, pool2d bf16, p.cast_f32, fc f32, "
      "softmax_with_cross_entropy f32, accuracy f32, mean f32");
  CHECK(
      Cast({.custom_black_varnames = {"conv"}}).ops() ==
      "conv2d f32, batch_norm f32, relu f32, pool2d f32, p.cast_bf16, v.cast_bf16, fc bf16, logits.cast_f32, "
      "softmax_with_cross_entropy f32, accuracy f32, mean f32");
}

TEST_CASE("a depthwise convolution stays f32") {
  CHECK(Cast({}, with_depthwise()).ops() ==
        "image.cast_bf16, u.cast_bf16, conv2d bf16, a.cast_f32, conv2d f32, relu f32");
  CHECK(Cast({.custom_white_list = {"depthwise_conv2d"}}, with_depthwise()).ops() ==
        "image.cast_bf16, u.cast_bf16, conv2d bf16, w.cast_bf16, conv2d bf16, relu bf16");
}

std::string refusal(const job::AmpSpec& amp) {
  try {
    Cast cast(amp);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.message();
  }
}

TEST_CASE("lists that cannot be followed are refused by name") {
  CHECK(
      refusal({.custom_white_list = {"matmul"}, .custom_black_list = {"fc"}}) ==
      "strategy.amp_configs.custom_white_list has matmul and strategy.amp_configs.custom_black_list has fc, wanted it in one of them");
  CHECK(refusal({.custom_black_list = {"poool2d"}}) ==
        "strategy.amp_configs.custom_black_list has poool2d, which is not an op; did you mean pool2d?");
  CHECK(refusal({.custom_white_list = {"nothing_like_it"}}) ==
        "strategy.amp_configs.custom_white_list has nothing_like_it, which is not an op");
  CHECK(
      refusal({.custom_white_list = {"softmax"}}) ==
      "strategy.amp_configs.custom_white_list has softmax, which computes in f32 only; those that do not are "
      "batch_norm, concat, conv2d, depthwise_conv2d, dropout, elementwise_add, fc, pool2d, relu, relu6, "
      "scale");
  CHECK(
      refusal({.custom_black_varnames = {"logit"}}) ==
      "strategy.amp_configs.custom_black_varnames has logit, and the model has no value of that name; did you mean logits?");
}

job::StrategySpec amp_strategy() {
  job::StrategySpec strategy;
  strategy.amp = true;
  strategy.build_strategy.fuse_bn_add_act_ops = false;
  return strategy;
}

// How many ops of each type make which type, without the casts.
std::map<std::string, int> types_of(const Program& program, Role role) {
  std::map<std::string, int> types;
  for (const Op& op : program.ops)
    if (op.role == role && op.type != "cast")
      for (const ValueId id : op.outputs)
        if (id != kNone) {
          ++types[fmt::format("{} {}", op.type, describe(program.value(id).dtype))];
          break;
        }
  return types;
}

TEST_CASE("the ops of ResNet-50 by the type that they make") {
  const test::BuiltModel built = test::build_model(job::ModelName::resnet50, 1000, 1, amp_strategy());
  CHECK(types_of(built.program, Role::forward) ==
        std::map<std::string, int>{{"conv2d bf16", 53},
                                   {"batch_norm bf16", 53},
                                   {"relu bf16", 49},
                                   {"elementwise_add bf16", 16},
                                   {"pool2d bf16", 2},
                                   {"fc bf16", 1},
                                   {"softmax_with_cross_entropy f32", 1},
                                   {"accuracy f32", 1},
                                   {"mean f32", 1},
                                   {"scale_loss f32", 1}});
  CHECK(types_of(built.program, Role::backward) ==
        std::map<std::string, int>{{"conv2d_grad_weights bf16", 53},
                                   {"conv2d_grad_input bf16", 52},
                                   {"batch_norm_grad bf16", 53},
                                   {"relu_grad bf16", 49},
                                   {"elementwise_add bf16", 16},
                                   {"pool2d_grad bf16", 2},
                                   {"fc_grad_weights bf16", 1},
                                   {"fc_grad_input bf16", 1},
                                   {"softmax_with_cross_entropy_grad f32", 1},
                                   {"mean_grad f32", 1},
                                   {"fill f32", 1},
                                   {"scale_loss f32", 1}});
  CHECK(built.tells("amp: 174 of 177 ops compute in bf16, 57 casts; the loss scale starts at 32768"));
  CHECK(built.count("cast") == 57 + 1);  // the gradient of the logits goes back through its cast
}

TEST_CASE("a black pool2d of ResNet-50 is f32 and has casts around it") {
  job::StrategySpec strategy = amp_strategy();
  strategy.amp_configs.custom_black_list = {"pool2d"};
  const test::BuiltModel built = test::build_model(job::ModelName::resnet50, 1000, 1, strategy);
  auto types = types_of(built.program, Role::forward);
  CHECK(types["pool2d f32"] == 2);
  CHECK(types["pool2d bf16"] == 0);
  CHECK(built.tells("amp: 172 of 177 ops compute in bf16, 61 casts; the loss scale starts at 32768"));
}

TEST_CASE("161 gradients travel in 8 messages with amp, as published, and in about half the bytes") {
  struct Case {
    int classes;
    std::size_t wide, narrow;  // bytes without padding
  };
  for (const Case& expected : {Case{102, 94'868'120, 47'540'300}, Case{1000, 102'228'128, 51'220'304}}) {
    const auto bytes_with = [&](bool amp) {
      job::StrategySpec strategy;
      strategy.amp = amp;
      const test::BuiltModel built =
          test::build_model(job::ModelName::resnet50, expected.classes, 2, strategy);
      if (amp && expected.classes == 102) CHECK(built.count("all_reduce") == 8);
      std::size_t bytes = 0, gradients = 0;
      for (const Op& op : built.program.ops)
        if (op.type == "all_reduce")
          for (const ValueId id : op.inputs) {
            const Value& value = built.program.value(id);
            bytes += static_cast<std::size_t>(count_of(value.shape)) * size_of(value.dtype);
            ++gradients;
          }
      CHECK(gradients == 161);
      return bytes;
    };
    CHECK(bytes_with(false) == expected.wide);
    CHECK(bytes_with(true) == expected.narrow);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::cast_forward_test
