// Layers with parameters, as models put them together. Parameters are called <name>.weight and <name>.bias.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// How the weights of a layer start.
enum class Start {
  fan_in,   // uniform in +-1/sqrt(fan_in), the bias too: torch.nn.Linear and Conv2d by themselves
  fan_out,  // normal, variance 2/fan_out, the bias 0: He et al. 2015, as torchvision's networks with ReLU
  small,    // normal, deviation 0.01, the bias 0: torchvision's vgg classifier
};

// x [N,...] -> [N,outputs]: x flattened, times weight [outputs,inputs], plus bias.
ValueId fc_layer(Builder& builder, const std::string& name, ValueId x, std::int64_t outputs,
                 Start start = Start::fan_in);

struct ConvOptions {
  std::int64_t channels = 0;  // of the output
  std::int64_t kernel = 1;    // square
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Start start = Start::fan_in;
};

// x [N,C,H,W] -> [N,channels,H',W'].
ValueId conv_layer(Builder& builder, const std::string& name, ValueId x, const ConvOptions& options);

// Normalises each channel; weight 1 and bias 0 at first. Keeps <name>.running_mean and <name>.running_var,
// which a program for evaluation uses in place of the batch's own, and so does a frozen layer.
ValueId batch_norm_layer(Builder& builder, const std::string& name, ValueId x, bool training);

ValueId relu_layer(Builder& builder, const std::string& name, ValueId x);

struct PoolOptions {
  std::int64_t window = 2;  // square
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};
ValueId max_pool_layer(Builder& builder, const std::string& name, ValueId x, const PoolOptions& options = {});

// x [N,C,H,W] -> [N,C,1,1].
ValueId global_average_layer(Builder& builder, const std::string& name, ValueId x);

// Nothing when p is 0 or the program is for evaluation.
ValueId dropout_layer(Builder& builder, const std::string& name, ValueId x, double p, bool training);

}  // namespace fleetrun::runtime
