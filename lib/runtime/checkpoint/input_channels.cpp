#include "runtime/checkpoint/input_channels.h"

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

constexpr std::int64_t kGrey = 1, kColour = 3;  // channels

// [outputs, 3, pixels] -> [outputs, pixels]
std::vector<float> sum_of_channels(const std::vector<float>& weights, std::size_t outputs,
                                   std::size_t pixels) {
  std::vector<float> sums(outputs * pixels);
  for (std::size_t output = 0; output < outputs; ++output)
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const float* const first = &weights[output * kColour * pixels + pixel];
      sums[output * pixels + pixel] = first[0] + first[pixels] + first[2 * pixels];
    }
  return sums;
}

// [outputs, pixels] -> [outputs, 3, pixels]
std::vector<float> thirds(const std::vector<float>& weights, std::size_t outputs, std::size_t pixels) {
  std::vector<float> parts;
  parts.reserve(weights.size() * kColour);
  for (std::size_t output = 0; output < outputs; ++output)
    for (std::int64_t channel = 0; channel < kColour; ++channel)
      for (std::size_t pixel = 0; pixel < pixels; ++pixel)
        parts.push_back(weights[output * pixels + pixel] / kColour);
  return parts;
}

void replace(StoredTensor& tensor, std::int64_t channels, const std::vector<float>& values,
             Safetensors& file) {
  tensor.dtype = DType::f32;
  tensor.shape[1] = channels;
  tensor.bytes =
      file.changed.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

}  // namespace

std::string fit_input_channels(Safetensors& file, const std::string& weight, std::int64_t channels) {
  const auto found = file.tensors.find(weight);
  if (found == file.tensors.end() || found->second.shape.size() != 4 || !is_float(found->second.dtype))
    return "";
  StoredTensor& tensor = found->second;
  const std::int64_t before = tensor.shape[1];
  const auto outputs = static_cast<std::size_t>(tensor.shape[0]),
             pixels = static_cast<std::size_t>(tensor.shape[2] * tensor.shape[3]);
  const std::string layer = weight.substr(0, weight.rfind('.'));
  if (before == kColour && channels == kGrey) {
    replace(tensor, channels, sum_of_channels(to_floats(tensor), outputs, pixels), file);
    return fmt::format(
        "the layer {} takes 3 channels, and the images have 1: it starts with the sum of its weights over the channels",
        layer);
  }
  if (before == kGrey && channels == kColour) {
    replace(tensor, channels, thirds(to_floats(tensor), outputs, pixels), file);
    return fmt::format(
        "the layer {} takes 1 channel, and the images have 3: it starts with a third of its weights for each channel",
        layer);
  }
  return "";
}

}  // namespace fleetrun::runtime
