#include "runtime/checkpoint/input_channels.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace fleetrun::runtime::input_channels_test {
namespace {

using Floats = std::vector<float>;

Safetensors file_with(const Shape& shape, const Floats& values) {
  Safetensors file;
  const std::string& bytes =
      file.changed.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  file.tensors["conv1.weight"] = {DType::f32, shape, bytes};
  return file;
}

TEST_CASE("for grey images, the first convolution gets the sum of its weights over the colours") {
  Safetensors file = file_with({2, 3, 1, 2}, {1, 2, 10, 20, 100, 200, 3, 4, 30, 40, 300, 400});
  CHECK(
      fit_input_channels(file, "conv1.weight", 1) ==
      "the layer conv1 takes 3 channels, and the images have 1: it starts with the sum of its weights over the channels");
  CHECK(file.tensors.at("conv1.weight").shape == Shape{2, 1, 1, 2});
  CHECK(to_floats(file.tensors.at("conv1.weight")) == Floats{111, 222, 333, 444});
}

TEST_CASE("for colour images, the first convolution gets a third of its weights for each colour") {
  Safetensors file = file_with({2, 1, 1, 2}, {3, 6, 9, 12});
  CHECK(
      fit_input_channels(file, "conv1.weight", 3) ==
      "the layer conv1 takes 1 channel, and the images have 3: it starts with a third of its weights for each channel");
  CHECK(file.tensors.at("conv1.weight").shape == Shape{2, 3, 1, 2});
  CHECK(to_floats(file.tensors.at("conv1.weight")) == Floats{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
}

TEST_CASE("16-bit weights of a first convolution become f32") {
  Safetensors file = file_with({1, 3, 1, 1}, {});
  const std::string ones("\x00\x3c\x00\x3c\x00\x3c", 6);  // f16
  file.tensors["conv1.weight"] = {DType::f16, {1, 3, 1, 1}, ones};
  CHECK(!fit_input_channels(file, "conv1.weight", 1).empty());
  CHECK(file.tensors.at("conv1.weight").as<float>() == Floats{3});
}

TEST_CASE("all other weights stay as they are") {
  const auto stays = [](Safetensors file, std::int64_t channels) {
    const Shape before = file.tensors.at("conv1.weight").shape;
    return fit_input_channels(file, "conv1.weight", channels).empty() &&
           file.tensors.at("conv1.weight").shape == before;
  };
  CHECK(stays(file_with({1, 3, 1, 1}, {1, 2, 3}), 3));
  CHECK(stays(file_with({1, 1, 1, 1}, {1}), 1));
  CHECK(stays(file_with({1, 4, 1, 1}, {1, 2, 3, 4}), 3));
  CHECK(stays(file_with({1, 3}, {1, 2, 3}), 1));  // a linear layer
  Safetensors file;
  CHECK(fit_input_channels(file, "conv1.weight", 1).empty());
  CHECK(file.tensors.empty());
}

}  // namespace
}  // namespace fleetrun::runtime::input_channels_test
