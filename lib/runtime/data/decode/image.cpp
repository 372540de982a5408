#include "runtime/data/decode/image.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/number/vector_clones.h"

namespace fleetrun::runtime {
namespace {

// The source position of a target pixel: centres lie over centres, as OpenCV and PyTorch place them.
struct Source {
  int low;
  int high;
  float weight;  // of high
};

// One axis of a region: [first, first + length) of `size` pixels.
struct Axis {
  double first, length;
  int size;

  Source at(int target, int target_size) const {
    const double centre = first + (target + 0.5) * length / target_size - 0.5;
    const double last = std::min(first + length, static_cast<double>(size)) - 1;
    const double position = std::clamp(centre, std::max(first, 0.0), std::max({first, last, 0.0}));
    const int low = std::min(static_cast<int>(position), size - 1);
    return {low, std::min(low + 1, size - 1), static_cast<float>(position - low)};
  }
};

// Where the target's columns come from; the first and last byte of a source row that are needed.
struct Columns {
  std::size_t begin = 0, end = 0;
};

Columns plan_columns(const Axis& axis, int target, int channels, FitScratch& scratch) {
  const auto count = static_cast<std::size_t>(target);
  scratch.left.resize(count);
  scratch.right.resize(count);
  scratch.weight.resize(count);
  const int first = axis.at(0, target).low * channels;
  for (int x = 0; x < target; ++x) {
    const Source from = axis.at(x, target);
    scratch.left[static_cast<std::size_t>(x)] = from.low * channels - first;
    scratch.right[static_cast<std::size_t>(x)] = from.high * channels - first;
    scratch.weight[static_cast<std::size_t>(x)] = from.weight;
  }
  return {static_cast<std::size_t>(first),
          static_cast<std::size_t>((axis.at(target - 1, target).high + 1) * channels)};
}

FLEETRUN_VECTOR_LOOP
void mix_rows(const std::uint8_t* top, const std::uint8_t* bottom, float weight, std::size_t count,
              float* mixed) {
  for (std::size_t i = 0; i < count; ++i) {
    const float above = top[i];
    mixed[i] = above + weight * (static_cast<float>(bottom[i]) - above);
  }
}

// One channel of a row of the target.
FLEETRUN_VECTOR_LOOP
void mix_columns(const float* row, const int* left, const int* right, const float* weight, int width,
                 std::uint8_t* target) {
  for (int x = 0; x < width; ++x) {
    const float from = row[left[x]];
    target[x] = static_cast<std::uint8_t>(static_cast<int>(from + weight[x] * (row[right[x]] - from) + 0.5F));
  }
}

void resize(const Image& image, const Axis& across, const Axis& down, const ImageShape& shape,
            FitScratch& scratch, std::uint8_t* planes) {
  const int channels = image.shape.channels;
  const std::size_t source_row = static_cast<std::size_t>(image.shape.width) * channels;
  const std::size_t plane = static_cast<std::size_t>(shape.height) * shape.width;
  const Columns columns = plan_columns(across, shape.width, channels, scratch);
  scratch.row.resize(columns.end - columns.begin);
  for (int y = 0; y < shape.height; ++y) {
    const Source from = down.at(y, shape.height);
    vector_clones<mix_rows>(image.pixels.data() + from.low * source_row + columns.begin,
                            image.pixels.data() + from.high * source_row + columns.begin, from.weight,
                            scratch.row.size(), scratch.row.data());
    for (int c = 0; c < channels; ++c)
      vector_clones<mix_columns>(scratch.row.data() + c, scratch.left.data(), scratch.right.data(),
                                 scratch.weight.data(), shape.width,
                                 planes + c * plane + static_cast<std::size_t>(y) * shape.width);
  }
}

void to_planes(const std::uint8_t* pixels, int channels, std::size_t count, std::uint8_t* planes) {
  for (int c = 0; c < channels; ++c, planes += count)
    for (std::size_t i = 0; i < count; ++i) planes[i] = pixels[i * static_cast<std::size_t>(channels) + c];
}

void grey_to_colours(std::uint8_t* planes, std::size_t count) {
  std::copy_n(planes, count, planes + count);
  std::copy_n(planes, count, planes + 2 * count);
}

FLEETRUN_VECTOR_LOOP
void colours_to_grey(const std::uint8_t* planes, std::size_t count, std::uint8_t* grey) {
  for (std::size_t i = 0; i < count; ++i)
    grey[i] = static_cast<std::uint8_t>(
        (299 * planes[i] + 587 * planes[i + count] + 114 * planes[i + 2 * count] + 500) / 1000);
}

}  // namespace

void check_image_size(const std::string& file, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1)
    throw Error(ErrorKind::data, fmt::format("{}: the image has {}x{} pixels", file, width, height));
  if (width > kMaxPixels / height)
    throw Error(ErrorKind::data, fmt::format("{}: the header says {}x{} pixels, the limit is {} pixels", file,
                                             width, height, kMaxPixels));
}

void Image::reset(const ImageShape& of) {
  shape = of;
  source_width = whole_width = of.width;
  source_height = whole_height = of.height;
  left = top = 0;
  pixels.resize(of.elements());
}

void fit_image(const Image& image, const Region& region, const ImageShape& shape, FitScratch& scratch,
               std::uint8_t* planes) {
  const std::size_t count = static_cast<std::size_t>(shape.height) * shape.width;
  const int channels = image.shape.channels;
  const bool to_grey = channels == 3 && shape.channels == 1;
  if (to_grey) scratch.colours.resize(3 * count);
  std::uint8_t* const target = to_grey ? scratch.colours.data() : planes;
  if (image.shape.height == shape.height && image.shape.width == shape.width &&
      region ==
          Region{0, 0, static_cast<double>(image.source_width), static_cast<double>(image.source_height)}) {
    to_planes(image.pixels.data(), channels, count, target);
  } else {
    const double scale_x = static_cast<double>(image.whole_width) / image.source_width;
    const double scale_y = static_cast<double>(image.whole_height) / image.source_height;
    resize(image, {region.left * scale_x - image.left, region.width * scale_x, image.shape.width},
           {region.top * scale_y - image.top, region.height * scale_y, image.shape.height}, shape, scratch,
           target);
  }
  if (to_grey) vector_clones<colours_to_grey>(target, count, planes);
  if (channels == 1 && shape.channels == 3) grey_to_colours(planes, count);
}

}  // namespace fleetrun::runtime
