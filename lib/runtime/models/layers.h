// Layers with parameters, as models put them together. Parameters are called <name>.weight and <name>.bias
// and start like PyTorch's: uniform in +-1/sqrt(fan_in) (torch.nn.Linear, torch.nn.Conv2d).
#pragma once
#include <cstdint>
#include <string>

#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// x [N,...] -> [N,outputs]: x flattened, times weight [outputs,inputs], plus bias.
ValueId fc_layer(Builder& builder, const std::string& name, ValueId x, std::int64_t outputs);

struct ConvOptions {
  std::int64_t channels = 0;  // of the output
  std::int64_t kernel = 1;    // square
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

// x [N,C,H,W] -> [N,channels,H',W'], with bias.
ValueId conv_layer(Builder& builder, const std::string& name, ValueId x, const ConvOptions& options);

ValueId relu_layer(Builder& builder, const std::string& name, ValueId x);

// Square windows without padding, as far apart as they are wide.
ValueId max_pool_layer(Builder& builder, const std::string& name, ValueId x, std::int64_t window);

// Nothing when p is 0 or the program is for evaluation.
ValueId dropout_layer(Builder& builder, const std::string& name, ValueId x, double p, bool training);

}  // namespace fleetrun::runtime
