// From the bytes of images to the numbers that a network takes, in the layout and type of its first op.
#include "cuda/plugin/divisor.cuh"
#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/number.cuh"

namespace fleetrun::cuda {
namespace {

struct Sizes {
  int channels, rows, columns;
  Divisor by_rows, by_columns;
};

// One thread for each pixel of y, with all of its channels. 1 byte read and b written per element. Predicted share of the
// memory bandwidth: 0.5 with the channels first; 0.35 with the channels last, where a thread writes its elements one by one.
template <typename T, bool channels_last>
__global__ void normalise_pixels(const std::uint8_t* x, const ImageView* views, T* y, PixelScales scales,
                                 Sizes sizes, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const auto [line, j] = sizes.by_columns.divide(static_cast<std::uint32_t>(i));
    const auto [image, place] = sizes.by_rows.divide(line);
    const ImageView view = views[image];
    const int row = static_cast<int>(place) + view.top;
    const int column =
        (view.mirrored != 0 ? sizes.columns - 1 - static_cast<int>(j) : static_cast<int>(j)) + view.left;
    const bool inside = row >= 0 && row < sizes.rows && column >= 0 && column < sizes.columns;
    const std::int64_t plane = std::int64_t{sizes.rows} * sizes.columns;
    const std::int64_t first = image * sizes.channels * plane;
    const std::int64_t source = first + std::int64_t{row} * sizes.columns + column;
    const std::int64_t target = channels_last ? i * sizes.channels : i - image * plane + first;
#pragma unroll
    for (int c = 0; c < kMostPixelChannels; ++c) {
      if (c >= sizes.channels) break;
      const float pixel = inside ? static_cast<float>(x[source + c * plane]) : 0.0F;
      const float number = view.present != 0 ? (pixel - scales.mean[c]) * scales.scale[c] : 0.0F;
      y[target + (channels_last ? c : c * plane)] = static_cast<T>(number);
    }
  }
}

}  // namespace

void crop_mirror_normalize(Number type, const std::uint8_t* x, const ImageView* views, void* y,
                           const PixelImages& images, const PixelScales& scales, cudaStream_t stream) {
  const Sizes sizes = {images.channels, images.rows, images.columns, Divisor(images.rows),
                       Divisor(images.columns)};
  const std::int64_t pixels = std::int64_t{images.count} * images.rows * images.columns;
  for_type(type, [&]<typename T>() {
    start_elements(images.channels_last ? normalise_pixels<T, true> : normalise_pixels<T, false>, pixels,
                   stream, x, views, static_cast<T*>(y), scales, sizes);
  });
}

}  // namespace fleetrun::cuda
