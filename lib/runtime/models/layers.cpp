#include "runtime/models/layers.h"

#include <cmath>

namespace fleetrun::runtime {
namespace {

Init uniform_by_fan_in(std::int64_t fan_in) {
  return {.how = Init::How::uniform, .value = 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

}  // namespace

ValueId fc_layer(Builder& builder, const std::string& name, ValueId x, std::int64_t outputs) {
  const Shape& shape = builder.program().value(x).shape;
  const std::int64_t inputs = count_of(shape) / shape.front();
  const ValueId weight = builder.parameter(name + ".weight", {outputs, inputs}, uniform_by_fan_in(inputs));
  const ValueId bias = builder.parameter(name + ".bias", {outputs}, uniform_by_fan_in(inputs));
  return builder.op(name, "fc", {{"x", x}, {"w", weight}, {"b", bias}});
}

ValueId conv_layer(Builder& builder, const std::string& name, ValueId x, const ConvOptions& options) {
  const std::int64_t in = builder.program().value(x).shape.at(1);
  const std::int64_t fan_in = in * options.kernel * options.kernel;
  const ValueId weight = builder.parameter(
      name + ".weight", {options.channels, in, options.kernel, options.kernel}, uniform_by_fan_in(fan_in));
  const ValueId bias = builder.parameter(name + ".bias", {options.channels}, uniform_by_fan_in(fan_in));
  using List = std::vector<std::int64_t>;
  return builder.op(name, "conv2d", {{"x", x}, {"w", weight}, {"b", bias}},
                    {{"strides", List{options.stride, options.stride}},
                     {"paddings", List{options.padding, options.padding}},
                     {"dilations", List{1, 1}},
                     {"groups", std::int64_t{1}}});
}

ValueId relu_layer(Builder& builder, const std::string& name, ValueId x) {
  return builder.op(name, "relu", {{"x", x}});
}

ValueId max_pool_layer(Builder& builder, const std::string& name, ValueId x, std::int64_t window) {
  using List = std::vector<std::int64_t>;
  return builder.op(name, "pool2d", {{"x", x}},
                    {{"kind", std::string("max")},
                     {"kernel", List{window, window}},
                     {"strides", List{window, window}},
                     {"paddings", List{0, 0}},
                     {"exclusive", true}});
}

ValueId dropout_layer(Builder& builder, const std::string& name, ValueId x, double p, bool training) {
  if (p == 0 || !training) return x;
  return builder.op(name, "dropout", {{"x", x}}, {{"p", p}, {"key", std::int64_t{1}}});
}

}  // namespace fleetrun::runtime
