#include "runtime/data/augment.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/data/sample_random.h"

namespace fleetrun::runtime {
namespace {

constexpr int kPad = 4;  // pixels on each side, as He et al. 2015 (arXiv:1512.03385) 4.2 augment CIFAR

// One row of the view, channel after channel, each [width].
void gather_row(const std::uint8_t* source, const ImageShape& shape, const View& view, std::uint8_t* row) {
  const int first = std::clamp(-view.left, 0, shape.width);  // the columns that lie inside the image
  const int last = std::clamp(shape.width - view.left, first, shape.width);
  for (int c = 0; c < shape.channels; ++c, row += shape.width) {
    std::fill(row, row + first, std::uint8_t{0});
    const std::uint8_t* from = source + static_cast<std::ptrdiff_t>(first + view.left) * shape.channels + c;
    for (int x = first; x < last; ++x, from += shape.channels) row[x] = *from;
    std::fill(row + last, row + shape.width, std::uint8_t{0});
    if (view.flip) std::reverse(row, row + shape.width);
  }
}

// Vectorised: contiguous bytes to contiguous floats.
void normalise(const std::uint8_t* row, int width, float mean, float scale, float* plane) {
  for (int x = 0; x < width; ++x) plane[x] = (static_cast<float>(row[x]) - mean) * scale;
}

}  // namespace

View plan_view(job::Augment augment, std::int64_t seed, int epoch, std::int32_t sample) {
  if (augment == job::Augment::none) return {};
  if (augment != job::Augment::crop_flip)
    throw Error(ErrorKind::config,
                fmt::format("augment {} is not supported by this build",
                            augment == job::Augment::resize_crop ? "resize_crop" : "random_resized_crop"));
  SampleRandom random(RandomUse::augment, {seed, epoch, sample});
  View view;
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
  const auto width = static_cast<std::size_t>(shape.width),
             channels = static_cast<std::size_t>(shape.channels);
  const std::size_t plane = width * static_cast<std::size_t>(shape.height);
  row.resize(width * channels);
  for (int y = 0; y < shape.height; ++y) {
    const int from = y + view.top;
    if (from < 0 || from >= shape.height)
      std::fill(row.begin(), row.end(), std::uint8_t{0});
    else
      gather_row(pixels + static_cast<std::size_t>(from) * row.size(), shape, view, row.data());
    for (std::size_t c = 0; c < channels; ++c)
      normalise(row.data() + c * width, shape.width, normalisation.mean[c], normalisation.scale[c],
                planes + c * plane + static_cast<std::size_t>(y) * width);
  }
}

}  // namespace fleetrun::runtime
