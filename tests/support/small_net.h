// A small training program with every kind of CPU kernel that a step of a convolutional net uses.
#pragma once
#include <string>

#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime::test {

inline Attributes convolution(std::int64_t stride, std::int64_t padding) {
  return {{"strides", Shape{stride, stride}},
          {"paddings", Shape{padding, padding}},
          {"dilations", Shape{1, 1}},
          {"groups", std::int64_t{1}}};
}

inline Attributes pooling(const std::string& kind) {
  return {{"kind", kind},
          {"kernel", Shape{2, 2}},
          {"strides", Shape{2, 2}},
          {"paddings", Shape{0, 0}},
          {"exclusive", true}};
}

inline ValueId convolve(Builder& builder, const std::string& name, ValueId x, std::int64_t out,
                        std::int64_t kernel) {
  const std::int64_t in = builder.program().value(x).shape[1];
  const ValueId w = builder.parameter(name + ".w", {out, in, kernel, kernel}, {});
  const ValueId b = builder.parameter(name + ".b", {out}, {});
  return builder.op(name, "conv2d", {{"x", x}, {"w", w}, {"b", b}}, convolution(1, kernel / 2));
}

inline ValueId normalise(Builder& builder, const std::string& name, ValueId x) {
  const Shape channels = {builder.program().value(x).shape[1]};
  const Init one = {.how = Init::How::constant, .value = 1};
  return builder
      .add({.type = "batch_norm",
            .inputs = {{"x", x},
                       {"scale", builder.parameter(name + ".scale", channels, one)},
                       {"bias", builder.parameter(name + ".bias", channels, {})},
                       {"mean", builder.state(name + ".mean", channels, {}, kNone)},
                       {"variance", builder.state(name + ".variance", channels, one, kNone)}},
            .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", true}},
            .name = name})
      .front();
}

inline void update_parameters(Builder& builder) {
  Program& program = builder.program();
  const ValueId rate = builder.feed("learning_rate", {1});
  for (const ValueId id : program.of_kind(ValueKind::parameter)) {
    const std::string name = program.value(id).name;
    const ValueId velocity = builder.state(name + ".velocity", Shape(program.value(id).shape), {}, id);
    builder.add({.type = "momentum",
                 .inputs = {{"param", id},
                            {"grad", program.gradient_of(id)},
                            {"velocity", velocity},
                            {"learning_rate", rate}},
                 .attributes = {{"mu", 0.9}, {"use_nesterov", false}, {"weight_decay", 1e-4}},
                 .role = Role::optimize,
                 .name = name + ".momentum"});
  }
}

// conv1 bn1 relu1 pool1 conv2 relu2 pool2 dropout fc, the loss and its mean, accuracy, backward, momentum;
// feeds: image [4, channels, 16, 16], label, learning_rate.
inline Program small_net(std::int64_t channels) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {4, channels, 16, 16});
  const ValueId label = builder.feed("label", {4}, DType::i32);
  ValueId x = builder.op("relu1", "relu",
                         {{"x", normalise(builder, "bn1", convolve(builder, "conv1", image, 32, 5))}});
  x = builder.op("pool1", "pool2d", {{"x", x}}, pooling("max"));
  x = builder.op("relu2", "relu", {{"x", convolve(builder, "conv2", x, 64, 3)}});
  x = builder.op("pool2", "pool2d", {{"x", x}}, pooling("average"));
  x = builder.op("dropout", "dropout", {{"x", x}}, {{"p", 0.5}, {"key", std::int64_t{1}}});
  x = builder.op("fc", "fc", {{"x", x}, {"w", builder.parameter("fc.w", {10, 64 * 4 * 4}, {})}});
  const Arguments scores = {{"logits", x}, {"label", label}};
  const auto made = builder.add({.type = "softmax_with_cross_entropy", .inputs = scores, .name = "ce"});
  builder.op("accuracy", "accuracy", {{"x", made[0]}, {"label", label}});
  append_backward(builder, builder.op("loss", "mean", {{"x", made[1]}}));
  update_parameters(builder);
  return program;
}

}  // namespace fleetrun::runtime::test
