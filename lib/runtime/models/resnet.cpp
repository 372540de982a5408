// Residual networks (He et al. 2015, arXiv:1512.03385) as torchvision defines them: "v1.5", with the stride
// of a bottleneck in its 3x3 convolution. Parameters have torchvision's names.
#include <array>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/models/layers.h"
#include "runtime/models/models.h"

namespace fleetrun::runtime {
namespace {

// A stack of residual blocks.
struct Stage {
  std::int64_t channels = 0;  // inside the blocks
  int blocks = 0;
  std::int64_t stride = 1;  // of the first block
};

struct Design {
  std::vector<Stage> stages;
  bool bottleneck = false;
};

constexpr std::int64_t kExpansion = 4;  // of a bottleneck's output over its inner channels

class ResNet {
 public:
  ResNet(Builder& builder, bool training) : builder_(builder), training_(training) {}

  ValueId conv_bn(const std::string& conv, const std::string& bn, ValueId x, ConvOptions options) {
    options.bias = false;
    options.start = Start::fan_out;
    return batch_norm_layer(builder_, bn, conv_layer(builder_, conv, x, options), training_);
  }

  ValueId relu(const std::string& name, ValueId x) { return relu_layer(builder_, name, x); }

  ValueId stages(const Design& design, ValueId x) {
    for (std::size_t i = 0; i < design.stages.size(); ++i) {
      const Stage& stage = design.stages[i];
      for (int block = 0; block < stage.blocks; ++block) {
        const std::string name = fmt::format("layer{}.{}", i + 1, block);
        const std::int64_t stride = block == 0 ? stage.stride : 1;
        x = design.bottleneck ? bottleneck(name, x, stage.channels, stride)
                              : basic(name, x, stage.channels, stride);
      }
    }
    return x;
  }

 private:
  //   x -> conv 3x3 (stride) - bn - relu - conv 3x3 - bn -> + -> relu
  //    \-------------- shortcut --------------------------/
  ValueId basic(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride) {
    ValueId y = conv_bn(name + ".conv1", name + ".bn1", x,
                        {.channels = channels, .kernel = 3, .stride = stride, .padding = 1});
    y = relu(name + ".relu1", y);
    y = conv_bn(name + ".conv2", name + ".bn2", y, {.channels = channels, .kernel = 3, .padding = 1});
    return join(name, y, shortcut(name, x, channels, stride));
  }

  //   x -> conv 1x1 - bn - relu - conv 3x3 (stride) - bn - relu - conv 1x1 (4 times the channels) - bn -> + -> relu
  //    \------------------------------------- shortcut -------------------------------------------------/
  ValueId bottleneck(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride) {
    ValueId y = conv_bn(name + ".conv1", name + ".bn1", x, {.channels = channels});
    y = relu(name + ".relu1", y);
    y = conv_bn(name + ".conv2", name + ".bn2", y,
                {.channels = channels, .kernel = 3, .stride = stride, .padding = 1});
    y = relu(name + ".relu2", y);
    y = conv_bn(name + ".conv3", name + ".bn3", y, {.channels = channels * kExpansion});
    return join(name, y, shortcut(name, x, channels * kExpansion, stride));
  }

  // x itself where the shapes agree, else a 1x1 convolution and batch norm.
  ValueId shortcut(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride) {
    if (stride == 1 && builder_.program().value(x).shape.at(1) == channels) return x;
    return conv_bn(name + ".downsample.0", name + ".downsample.1", x,
                   {.channels = channels, .stride = stride});
  }

  ValueId join(const std::string& name, ValueId y, ValueId shortcut) {
    return relu(name + ".relu", builder_.op(name + ".add", "elementwise_add", {{"x", y}, {"y", shortcut}}));
  }

  Builder& builder_;
  bool training_;
};

ValueId finish(Builder& builder, const ModelRequest& request, ValueId x) {
  x = global_average_layer(builder, "avgpool", x);
  x = dropout_layer(builder, "dropout", x, request.spec.dropout, request.training);
  return fc_layer(builder, "fc", x, request.facts.classes);
}

Design design_of(job::ModelName name) {
  const auto stages = [](std::array<int, 4> blocks) {
    return std::vector<Stage>{
        {64, blocks[0], 1}, {128, blocks[1], 2}, {256, blocks[2], 2}, {512, blocks[3], 2}};
  };
  switch (name) {
    case job::ModelName::resnet18:
      return {stages({2, 2, 2, 2}), false};
    case job::ModelName::resnet34:
      return {stages({3, 4, 6, 3}), false};
    case job::ModelName::resnet50:
      return {stages({3, 4, 6, 3}), true};
    case job::ModelName::resnet101:
      return {stages({3, 4, 23, 3}), true};
    case job::ModelName::resnet152:
      return {stages({3, 8, 36, 3}), true};
    default:
      throw Error(ErrorKind::internal, "this model is not a residual network for ImageNet");
  }
}

}  // namespace

ValueId build_resnet(Builder& builder, const ModelRequest& request) {
  ResNet net(builder, request.training);
  ValueId x =
      net.conv_bn("conv1", "bn1", request.image, {.channels = 64, .kernel = 7, .stride = 2, .padding = 3});
  x = net.relu("relu", x);
  x = max_pool_layer(builder, "maxpool", x, {.window = 3, .stride = 2, .padding = 1});
  return finish(builder, request, net.stages(design_of(request.spec.name), x));
}

// Section 4.2 of the paper with n = 3, for small images; the two shortcuts that change shape are 1x1
// convolutions with batch norm.
ValueId build_resnet20(Builder& builder, const ModelRequest& request) {
  ResNet net(builder, request.training);
  ValueId x = net.conv_bn("conv1", "bn1", request.image, {.channels = 16, .kernel = 3, .padding = 1});
  x = net.relu("relu", x);
  return finish(builder, request, net.stages({{{16, 3, 1}, {32, 3, 2}, {64, 3, 2}}, false}, x));
}

}  // namespace fleetrun::runtime
