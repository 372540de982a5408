// The names and shapes under which frameworks keep the weights of the same model.
//
//                  batch norm                           linear layer
//   torchvision    bn1.running_mean, bn1.running_var    fc.weight [outputs, inputs]
//   PaddlePaddle   bn1._mean, bn1._variance             fc.weight [inputs, outputs]
//
// The layers of ResNet and VGG have the same names in torchvision.models, in timm (ResNet) and in paddle.vision.models. Those of
// mobilenet_v1, which torchvision does not have, differ in paddle.vision.models.
#pragma once
#include <optional>
#include <string_view>

#include "runtime/checkpoint/safetensors.h"

namespace fleetrun::runtime {

enum class WeightNames { torchvision, paddle };

std::optional<WeightNames> parse_weight_names(std::string_view text);  // "torchvision", "paddle"

// By the names of the running statistics, or else by the shapes of a linear layer's weight and bias. If every weight is square, by what
// with_names() wrote into the metadata. torchvision if nothing tells.
WeightNames names_of(const Safetensors& file);

// The same weights under these names. A linear layer is a weight with two sizes and a bias. PaddlePaddle has no place for PyTorch's
// counters `*.num_batches_tracked`, which are left out. Throws Error(data) for a weight with two sizes and no bias: PaddlePaddle
// transposes linear layers only.
Safetensors with_names(Safetensors file, WeightNames wanted);

}  // namespace fleetrun::runtime
