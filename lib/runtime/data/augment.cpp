#include "runtime/data/augment.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/number/vector_clones.h"

namespace fleetrun::runtime {
namespace {

constexpr int kPad = 4;  // pixels on each side, as He et al. 2015 (arXiv:1512.03385) 4.2 augment CIFAR

// One row of one channel of the view, [width].
void gather_row(const std::uint8_t* source, int width, const View& view, std::uint8_t* row) {
  const int first = std::clamp(-view.left, 0, width);  // the columns that lie inside the image
  const int last = std::clamp(width - view.left, first, width);
  std::fill(row, row + first, std::uint8_t{0});
  std::copy(source + first + view.left, source + last + view.left, row + first);
  std::fill(row + last, row + width, std::uint8_t{0});
}

FLEETRUN_VECTOR_LOOP
void normalise(const std::uint8_t* row, int width, float mean, float scale, float* plane) {
  for (int x = 0; x < width; ++x) plane[x] = (static_cast<float>(row[x]) - mean) * scale;
}

FLEETRUN_VECTOR_LOOP
void normalise_mirrored(const std::uint8_t* row, int width, float mean, float scale, float* plane) {
  for (int x = 0; x < width; ++x) plane[x] = (static_cast<float>(row[width - 1 - x]) - mean) * scale;
}

}  // namespace

View plan_view(const Framing& framing) {
  if (framing.augment == job::Augment::none || framing.augment == job::Augment::resize_crop) return {};
  SampleRandom random = random_of(framing, RandomUse::augment);
  View view;
  if (framing.augment == job::Augment::random_resized_crop) {
    view.flip = random.below(2) == 1;
    return view;
  }
  view.top = static_cast<int>(random.below(2 * kPad + 1)) - kPad;
  view.left = static_cast<int>(random.below(2 * kPad + 1)) - kPad;
  view.flip = random.below(2) == 1;
  return view;
}

Normalisation make_normalisation(const std::vector<double>& mean, const std::vector<double>& deviation,
                                 int channels) {
  constexpr double kWhite = 255;
  const auto check = [channels](const std::vector<double>& list, const char* name) {
    if (!list.empty() && list.size() != static_cast<std::size_t>(channels))
      throw Error(ErrorKind::config,
                  fmt::format("{} of a data set has {} numbers, its images have {} channels", name,
                              list.size(), channels));
  };
  check(mean, "mean");
  check(deviation, "std");
  Normalisation normalisation;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const double width = deviation.empty() ? kWhite : deviation[c];
    if (!(width > 0))
      throw Error(ErrorKind::config, fmt::format("std of a data set is {}, must be above 0", width));
    normalisation.mean.at(c) = static_cast<float>(mean.empty() ? 0 : mean[c]);
    normalisation.scale.at(c) = static_cast<float>(1 / width);
  }
  return normalisation;
}

void write_planes(const std::uint8_t* pixels, const ImageShape& shape, const View& view,
                  const Normalisation& normalisation, std::vector<std::uint8_t>& row, float* planes) {
  const auto width = static_cast<std::size_t>(shape.width);
  const auto write_row = view.flip ? vector_clones<normalise_mirrored> : vector_clones<normalise>;
  row.resize(width);
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape.channels); ++c)
    for (int y = 0; y < shape.height; ++y, planes += width) {
      const int from = y + view.top;
      const bool outside = from < 0 || from >= shape.height;
      const std::uint8_t* source =
          pixels +
          (c * static_cast<std::size_t>(shape.height) + static_cast<std::size_t>(outside ? 0 : from)) * width;
      if (outside)
        std::fill(row.begin(), row.end(), std::uint8_t{0});
      else if (view.left != 0)
        gather_row(source, shape.width, view, row.data());
      write_row(outside || view.left != 0 ? row.data() : source, shape.width, normalisation.mean[c],
                normalisation.scale[c], planes);
    }
}

}  // namespace fleetrun::runtime
