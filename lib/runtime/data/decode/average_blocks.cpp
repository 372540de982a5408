#include "runtime/data/decode/average_blocks.h"

#include <algorithm>

namespace fleetrun::runtime {
namespace {

// Adds one row of pixels to the sums of its squares.
void add_row(const std::uint8_t* pixel, int width, int side, std::size_t channels, std::uint32_t* sums) {
  for (int left = 0; left < width; left += side, sums += channels)
    for (int x = left; x < std::min(left + side, width); ++x)
      for (std::size_t c = 0; c < channels; ++c) sums[c] += *pixel++;
}

}  // namespace

void average_blocks(int side, Image& image) {
  if (side == 1) return;
  const ImageShape from = image.shape;
  const ImageShape to = {from.channels, (from.height + side - 1) / side, (from.width + side - 1) / side};
  const auto channels = static_cast<std::size_t>(from.channels);
  const std::size_t row = static_cast<std::size_t>(from.width) * channels;
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(to.width) * channels);
  std::uint8_t* out = image.pixels.data();  // never ahead of what is read
  for (int top = 0; top < from.height; top += side) {
    const int bottom = std::min(top + side, from.height);
    std::fill(sums.begin(), sums.end(), 0);
    for (int y = top; y < bottom; ++y)
      add_row(image.pixels.data() + static_cast<std::size_t>(y) * row, from.width, side, channels,
              sums.data());
    const std::uint32_t* sum = sums.data();
    for (int left = 0; left < from.width; left += side) {
      const auto count = static_cast<std::uint32_t>(std::min(side, from.width - left) * (bottom - top));
      for (std::size_t c = 0; c < channels; ++c)
        *out++ = static_cast<std::uint8_t>((*sum++ + count / 2) / count);
    }
  }
  const int width = image.source_width, height = image.source_height;
  image.reset(to);
  image.source_width = width;
  image.source_height = height;
}

}  // namespace fleetrun::runtime
