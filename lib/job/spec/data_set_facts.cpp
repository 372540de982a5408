#include "job/spec/data_set_facts.h"

namespace fleetrun::job {
namespace {

// Krizhevsky 2009, the binary version.
constexpr int kCifarClasses = 10;
constexpr int kCifarSide = 32;  // pixels

}  // namespace

int channels_of(const DataSetSpec& set) {
  return set.format == DataFormat::synthetic ? set.shape[0] : set.channels;
}

bool has_image_files(const DataSetSpec& set) {
  return set.format == DataFormat::image_folder || set.format == DataFormat::image_list;
}

std::optional<int> known_classes(const DataSetSpec& set) {
  if (set.format == DataFormat::cifar_bin) return kCifarClasses;
  if (set.format == DataFormat::synthetic) return set.classes;
  return std::nullopt;
}

std::optional<std::array<int, 3>> known_shape(const DataSetSpec& set) {
  if (set.format == DataFormat::synthetic) return set.shape;
  if (set.format == DataFormat::cifar_bin && !set.image_size)
    return std::array<int, 3>{set.channels, kCifarSide, kCifarSide};
  if (set.image_size) return std::array<int, 3>{set.channels, *set.image_size, *set.image_size};
  return std::nullopt;
}

Augment without_chance(Augment augment) {
  const bool crops = augment == Augment::resize_crop || augment == Augment::random_resized_crop;
  return crops ? Augment::resize_crop : Augment::none;
}

std::optional<DataSetSpec> evaluated_set(const DataSpec& data) {
  if (!data.split) return data.test;
  DataSetSpec set = data.train;
  set.augment = without_chance(set.augment);
  return set;
}

}  // namespace fleetrun::job
