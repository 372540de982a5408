#include "job/data_set_facts.h"

namespace fleetrun::job {
namespace {

// Krizhevsky 2009, the binary version: 10 classes, 32x32 pixels, red, green and blue planes.
constexpr int kCifarClasses = 10;
constexpr std::array<int, 3> kCifarShape = {3, 32, 32};

}  // namespace

int channels_of(const DataSetSpec& set) {
  switch (set.format) {
    case DataFormat::cifar_bin:
      return kCifarShape[0];
    case DataFormat::idx:
      return 1;
    case DataFormat::synthetic:
      return set.shape[0];
    case DataFormat::image_folder:
    case DataFormat::image_list:
      break;
  }
  return set.channels;
}

std::optional<int> known_classes(const DataSetSpec& set) {
  if (set.format == DataFormat::cifar_bin) return kCifarClasses;
  if (set.format == DataFormat::synthetic) return set.classes;
  return std::nullopt;
}

std::optional<std::array<int, 3>> known_shape(const DataSetSpec& set) {
  if (set.format == DataFormat::cifar_bin) return kCifarShape;
  if (set.format == DataFormat::synthetic) return set.shape;
  if (set.image_size) return std::array<int, 3>{set.channels, *set.image_size, *set.image_size};
  return std::nullopt;
}

}  // namespace fleetrun::job
