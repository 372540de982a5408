// Pretrained weights for images with another number of channels.
#pragma once
#include <string>

#include "runtime/checkpoint/safetensors.h"

namespace fleetrun::runtime {

// Fits the weights of a first convolution, [outputs, channels, height, width], to images with `channels` channels. Source:
// adapt_input_conv in timm/models/_manipulate.py (github.com/huggingface/pytorch-image-models).
//   3 to 1: the sum over the channels, so that the layer computes what it computed for a colour image with three equal channels
//   1 to 3: a third of the weights for each channel, so that the layer computes what it computed for the mean of the channels
// Returns what it did, such as "the layer conv1 takes 3 channels, ...". Does nothing and returns "" in all other cases.
std::string fit_input_channels(Safetensors& file, const std::string& weight, std::int64_t channels);

}  // namespace fleetrun::runtime
