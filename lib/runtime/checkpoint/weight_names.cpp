#include "runtime/checkpoint/weight_names.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

// A key of the metadata with its values. PyTorch's own tools write "pt", too.
constexpr const char *kNamesKey = "format", *kTorchFormat = "pt", *kPaddleFormat = "paddle";
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kCounter = ".num_batches_tracked";  // of PyTorch's batch norms

struct SameName {
  std::string torchvision, paddle;
};

// Last parts of names.
const std::array<SameName, 2> kStatistics = {{{"running_mean", "_mean"}, {"running_var", "_variance"}}};

// The layers of mobilenet_v1 (models/mobilenet_v1.cpp) and of paddle.vision.models.mobilenet_v1.
std::vector<SameName> layers_of_mobilenet_v1() {
  constexpr std::array kBlocks = {"conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv4_1", "conv4_2", "conv5_1",
                                  "conv5_2", "conv5_3", "conv5_4", "conv5_5", "conv5_6", "conv6"};
  std::vector<SameName> layers = {{"stem.conv", "conv1.0"}, {"stem.bn", "conv1.1"}};
  for (std::size_t i = 0; i < kBlocks.size(); ++i)
    for (const char* part : {"depthwise", "pointwise"})
      for (const auto& [ours, theirs] : {std::pair{"conv", 0}, std::pair{"bn", 1}})
        layers.push_back({fmt::format("blocks.{}.{}.{}", i, part, ours),
                          fmt::format("{}._{}_conv.{}", kBlocks[i], part, theirs)});
  return layers;
}

// The name that stands for `name` in one of the rows; `name` itself if none has it.
template <typename Rows>
std::string translated(const std::string& name, const Rows& rows, WeightNames wanted) {
  for (const SameName& row : rows) {
    const auto& [from, to] = wanted == WeightNames::paddle ? std::pair(row.torchvision, row.paddle)
                                                           : std::pair(row.paddle, row.torchvision);
    if (name == from) return to;
  }
  return name;
}

std::string translated(const std::string& name, WeightNames wanted) {
  static const std::vector<SameName> layers = layers_of_mobilenet_v1();
  const std::size_t point = name.rfind('.');
  if (point == std::string::npos) return name;
  return translated(name.substr(0, point), layers, wanted) + "." +
         translated(name.substr(point + 1), kStatistics, wanted);
}

// A linear layer's weight, or another tensor with two sizes.
bool is_matrix(const std::string& name, const StoredTensor& tensor) {
  return tensor.shape.size() == 2 && name.ends_with(kWeight);
}

// Of the layer with this weight; nullopt if it has no bias.
std::optional<std::int64_t> outputs_of(const std::string& weight, const Safetensors& file) {
  const auto bias = file.tensors.find(weight.substr(0, weight.size() - kWeight.size()) + ".bias");
  if (bias == file.tensors.end() || bias->second.shape.size() != 1) return std::nullopt;
  return bias->second.shape.front();
}

std::optional<WeightNames> names_by_statistics(const Safetensors& file) {
  for (const auto& [name, tensor] : file.tensors)
    for (const SameName& row : kStatistics) {
      if (name.ends_with("." + row.torchvision)) return WeightNames::torchvision;
      if (name.ends_with("." + row.paddle)) return WeightNames::paddle;
    }
  return std::nullopt;
}

std::optional<WeightNames> names_by_shapes(const Safetensors& file) {
  for (const auto& [name, tensor] : file.tensors) {
    if (!is_matrix(name, tensor) || tensor.shape[0] == tensor.shape[1]) continue;
    const auto outputs = outputs_of(name, file);
    if (tensor.shape[0] == outputs) return WeightNames::torchvision;
    if (tensor.shape[1] == outputs) return WeightNames::paddle;
  }
  return std::nullopt;
}

// [rows, columns] -> [columns, rows]. The new bytes belong to the file.
void transpose(StoredTensor& tensor, Safetensors& file) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]),
             columns = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t size = size_of(tensor.dtype);
  std::string& bytes = file.changed.emplace_back(tensor.bytes.size(), '\0');
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      std::memcpy(&bytes[(column * rows + row) * size], &tensor.bytes[(row * columns + column) * size], size);
  std::swap(tensor.shape[0], tensor.shape[1]);
  tensor.bytes = bytes;
}

Error not_linear(const std::string& name) {
  return Error(ErrorKind::data,
               fmt::format("{} has two sizes, but its layer has no bias, so fleetrun does not know whether "
                           "PaddlePaddle transposes it",
                           quoted_name(name)));
}

}  // namespace

std::optional<WeightNames> parse_weight_names(std::string_view text) {
  if (text == "torchvision") return WeightNames::torchvision;
  if (text == "paddle") return WeightNames::paddle;
  return std::nullopt;
}

WeightNames names_of(const Safetensors& file) {
  if (const auto names = names_by_statistics(file)) return *names;
  if (const auto names = names_by_shapes(file)) return *names;
  const auto format = file.metadata.find(kNamesKey);
  return format != file.metadata.end() && format->second == kPaddleFormat ? WeightNames::paddle
                                                                          : WeightNames::torchvision;
}

Safetensors with_names(Safetensors file, WeightNames wanted) {
  const bool has_them = names_of(file) == wanted;
  file.metadata[kNamesKey] = wanted == WeightNames::paddle ? kPaddleFormat : kTorchFormat;
  if (has_them) return file;
  for (auto& [name, tensor] : file.tensors)
    if (is_matrix(name, tensor)) {
      if (!outputs_of(name, file)) throw not_linear(name);
      transpose(tensor, file);
    }
  for (const auto& [name, tensor] : std::exchange(file.tensors, {}))
    if (!name.ends_with(kCounter)) file.tensors[translated(name, wanted)] = tensor;
  return file;
}

}  // namespace fleetrun::runtime
