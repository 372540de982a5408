#include "runtime/models/layers.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::runtime {
namespace {

using List = std::vector<std::int64_t>;

// Paddle's batch_norm and PyTorch's BatchNorm2d agree on both; Paddle's momentum weighs the old average.
constexpr double kEpsilon = 1e-5;
constexpr double kRunningMomentum = 0.9;

struct LayerInit {
  Init weight, bias;
};

LayerInit init_of(Start start, std::int64_t fan_in, std::int64_t fan_out) {
  const auto uniform = [](double bound) { return Init{.how = Init::How::uniform, .value = bound}; };
  const auto normal = [](double deviation) { return Init{.how = Init::How::normal, .value = deviation}; };
  switch (start) {
    case Start::fan_out:
      return {normal(std::sqrt(2.0 / static_cast<double>(fan_out))), {}};
    case Start::small:
      return {normal(0.01), {}};
    case Start::fan_in:
      break;
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return {uniform(bound), uniform(bound)};
}

Attributes pool_attributes(const char* kind, List kernel, List strides, List paddings) {
  return {{"kind", std::string(kind)},
          {"kernel", std::move(kernel)},
          {"strides", std::move(strides)},
          {"paddings", std::move(paddings)},
          {"exclusive", true}};
}

}  // namespace

ValueId fc_layer(Builder& builder, const std::string& name, ValueId x, std::int64_t outputs, Start start) {
  const Shape& shape = builder.program().value(x).shape;
  const std::int64_t inputs = count_of(shape) / shape.front();
  const LayerInit init = init_of(start, inputs, outputs);
  const ValueId weight = builder.parameter(name + ".weight", {outputs, inputs}, init.weight);
  const ValueId bias = builder.parameter(name + ".bias", {outputs}, init.bias);
  return builder.op(name, "fc", {{"x", x}, {"w", weight}, {"b", bias}});
}

ValueId conv_layer(Builder& builder, const std::string& name, ValueId x, const ConvOptions& options) {
  const std::int64_t in = builder.program().value(x).shape.at(1) / options.groups;
  const std::int64_t window = options.kernel * options.kernel;
  const LayerInit init = init_of(options.start, in * window, options.channels / options.groups * window);
  Arguments arguments = {
      {"x", x},
      {"w", builder.parameter(name + ".weight", {options.channels, in, options.kernel, options.kernel},
                              init.weight)}};
  if (options.bias)
    arguments.emplace_back("b", builder.parameter(name + ".bias", {options.channels}, init.bias));
  return builder.op(name, "conv2d", arguments,
                    {{"strides", List{options.stride, options.stride}},
                     {"paddings", List{options.padding, options.padding}},
                     {"dilations", List{1, 1}},
                     {"groups", options.groups}});
}

ValueId batch_norm_layer(Builder& builder, const std::string& name, ValueId x, bool training) {
  const Shape channels = {builder.program().value(x).shape.at(1)};
  const Init zero = {}, one = {.value = 1};
  const ValueId scale = builder.parameter(name + ".weight", channels, one),
                bias = builder.parameter(name + ".bias", channels, zero);
  const bool learns = training && builder.program().value(scale).kind == ValueKind::parameter;
  return builder
      .add({.type = "batch_norm",
            .inputs = {{"x", x},
                       {"scale", scale},
                       {"bias", bias},
                       {"mean", builder.state(name + ".running_mean", channels, zero, kNone)},
                       {"variance", builder.state(name + ".running_var", channels, one, kNone)}},
            .attributes = {{"epsilon", kEpsilon}, {"momentum", kRunningMomentum}, {"training", learns}},
            .name = name,
            .outputs = learns ? std::vector<std::string>{} : std::vector<std::string>{"y"}})
      .front();
}

ValueId relu_layer(Builder& builder, const std::string& name, ValueId x) {
  return builder.op(name, "relu", {{"x", x}});
}

ValueId max_pool_layer(Builder& builder, const std::string& name, ValueId x, const PoolOptions& options) {
  return builder.op(name, "pool2d", {{"x", x}},
                    pool_attributes("max", {options.window, options.window}, {options.stride, options.stride},
                                    {options.padding, options.padding}));
}

ValueId global_average_layer(Builder& builder, const std::string& name, ValueId x) {
  const Shape& shape = builder.program().value(x).shape;
  return builder.op(name, "pool2d", {{"x", x}},
                    pool_attributes("average", {shape.at(2), shape.at(3)}, {1, 1}, {0, 0}));
}

ValueId dropout_layer(Builder& builder, const std::string& name, ValueId x, double p, bool training) {
  if (p == 0 || !training) return x;
  const auto& ops = builder.program().ops;  // each dropout of a program draws from a stream of its own
  const std::int64_t before =
      std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.type == "dropout"; });
  return builder.op(name, "dropout", {{"x", x}}, {{"p", p}, {"key", before + 1}});
}

}  // namespace fleetrun::runtime
