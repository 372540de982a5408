#include "runtime/data/image.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::runtime {
namespace {

// The source position of each target pixel: centres lie over centres, as OpenCV and PyTorch place them.
struct Source {
  int low;
  int high;
  float weight;  // of high
};

Source source_of(int target, int target_size, int source_size) {
  const double centre = (target + 0.5) * source_size / target_size - 0.5;
  const double position = std::clamp(centre, 0.0, static_cast<double>(source_size - 1));
  const int low = static_cast<int>(position);
  return {low, std::min(low + 1, source_size - 1), static_cast<float>(position - low)};
}

void plan_columns(int target, int source, int channels, FitScratch& scratch) {
  const auto count = static_cast<std::size_t>(target);
  scratch.left.resize(count);
  scratch.right.resize(count);
  scratch.weight.resize(count);
  for (int x = 0; x < target; ++x) {
    const Source from = source_of(x, target, source);
    scratch.left[static_cast<std::size_t>(x)] = from.low * channels;
    scratch.right[static_cast<std::size_t>(x)] = from.high * channels;
    scratch.weight[static_cast<std::size_t>(x)] = from.weight;
  }
}

void mix_rows(const std::uint8_t* top, const std::uint8_t* bottom, float weight, std::vector<float>& row) {
  float* mixed = row.data();
  const std::size_t count = row.size();
  for (std::size_t i = 0; i < count; ++i) {
    const float above = top[i];
    mixed[i] = above + weight * (static_cast<float>(bottom[i]) - above);
  }
}

void write_row(const FitScratch& scratch, int width, int channels, std::uint8_t* target) {
  for (int x = 0; x < width; ++x) {
    const auto column = static_cast<std::size_t>(x);
    const float* left = scratch.row.data() + scratch.left[column];
    const float* right = scratch.row.data() + scratch.right[column];
    for (int c = 0; c < channels; ++c)
      *target++ = static_cast<std::uint8_t>(left[c] + scratch.weight[column] * (right[c] - left[c]) + 0.5F);
  }
}

void resize(const Image& image, int height, int width, FitScratch& scratch) {
  const int channels = image.shape.channels;
  const std::size_t source_row = static_cast<std::size_t>(image.shape.width) * channels;
  const std::size_t target_row = static_cast<std::size_t>(width) * channels;
  scratch.resized.resize(target_row * height);
  scratch.row.resize(source_row);
  plan_columns(width, image.shape.width, channels, scratch);
  for (int y = 0; y < height; ++y) {
    const Source from = source_of(y, height, image.shape.height);
    mix_rows(image.pixels.data() + from.low * source_row, image.pixels.data() + from.high * source_row,
             from.weight, scratch.row);
    write_row(scratch, width, channels, scratch.resized.data() + y * target_row);
  }
}

void convert_channels(const std::uint8_t* from, int channels, const ImageShape& shape, std::uint8_t* to) {
  if (channels == shape.channels) {
    std::memcpy(to, from, shape.elements());
    return;
  }
  const std::size_t count = shape.elements() / static_cast<std::size_t>(shape.channels);
  if (channels == 1)
    for (std::size_t i = 0; i < count; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
  else
    for (std::size_t i = 0; i < count; ++i)
      to[i] = static_cast<std::uint8_t>(
          (299 * from[3 * i] + 587 * from[3 * i + 1] + 114 * from[3 * i + 2] + 500) / 1000);
}

}  // namespace

void check_image_size(const std::string& file, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1)
    throw Error(ErrorKind::data, fmt::format("{}: the image has {}x{} pixels", file, width, height));
  if (width > kMaxPixels / height)
    throw Error(ErrorKind::data, fmt::format("{}: the header says {}x{} pixels, the limit is {} pixels", file,
                                             width, height, kMaxPixels));
}

void fit_image(const Image& image, const ImageShape& shape, FitScratch& scratch, std::uint8_t* pixels) {
  const bool same_size = image.shape.height == shape.height && image.shape.width == shape.width;
  if (!same_size) resize(image, shape.height, shape.width, scratch);
  convert_channels(same_size ? image.pixels.data() : scratch.resized.data(), image.shape.channels, shape,
                   pixels);
}

}  // namespace fleetrun::runtime
