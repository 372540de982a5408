#include <array>

#include <fmt/format.h>

#include "runtime/models/layers.h"
#include "runtime/models/models.h"

namespace fleetrun::runtime {
namespace {

struct Block {
  std::int64_t channels = 0;
  std::int64_t stride = 1;
};

// Table 1 of the paper.
constexpr std::array<Block, 13> kBlocks = {{{64, 1},
                                            {128, 2},
                                            {128, 1},
                                            {256, 2},
                                            {256, 1},
                                            {512, 2},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {1024, 2},
                                            {1024, 1}}};

ValueId conv_bn_relu(Builder& builder, const std::string& name, ValueId x, ConvOptions options,
                     bool training) {
  options.bias = false;
  options.start = Start::fan_out;
  x = conv_layer(builder, name + ".conv", x, options);
  x = batch_norm_layer(builder, name + ".bn", x, training);
  return relu_layer(builder, name + ".relu", x);
}

}  // namespace

// Howard et al. 2017, arXiv:1704.04861, width 1: a 3x3 convolution, then 13 pairs of a 3x3 convolution of each
// channel by itself (stem.conv, blocks.0.depthwise.conv, ...) and a 1x1 convolution across them.
ValueId build_mobilenet_v1(Builder& builder, const ModelRequest& request) {
  ValueId x = conv_bn_relu(builder, "stem", request.image,
                           {.channels = 32, .kernel = 3, .stride = 2, .padding = 1}, request.training);
  for (std::size_t i = 0; i < kBlocks.size(); ++i) {
    const std::int64_t channels = builder.program().value(x).shape.at(1);
    const std::string name = fmt::format("blocks.{}", i);
    x = conv_bn_relu(
        builder, name + ".depthwise", x,
        {.channels = channels, .kernel = 3, .stride = kBlocks[i].stride, .padding = 1, .groups = channels},
        request.training);
    x = conv_bn_relu(builder, name + ".pointwise", x, {.channels = kBlocks[i].channels}, request.training);
  }
  x = global_average_layer(builder, "avgpool", x);
  x = dropout_layer(builder, "dropout", x, request.spec.dropout, request.training);
  return fc_layer(builder, "fc", x, request.facts.classes);
}

}  // namespace fleetrun::runtime
