// Of a decoded picture the part that a sample shows, made smaller.
#include "cuda/plugin/divisor.cuh"
#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {
namespace {

// One thread for each pixel of the part, with all of its channels. side * side bytes read and 1 written per element. Predicted share of the
// memory bandwidth: 0.3 for colours, whose three bytes a thread reads and writes one by one.
__global__ void average(const std::uint8_t* picture, std::uint8_t* part, PicturePart sizes, Divisor by_columns,
                        std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const auto [row, column] = by_columns.divide(static_cast<std::uint32_t>(i));
    const int top = (sizes.top + static_cast<int>(row)) * sizes.side;
    const int left = (sizes.left + static_cast<int>(column)) * sizes.side;
    const int bottom = min(top + sizes.side, sizes.rows), right = min(left + sizes.side, sizes.columns);
    const auto pixels = static_cast<std::uint32_t>((bottom - top) * (right - left));
    for (int c = 0; c < sizes.channels; ++c) {
      std::uint32_t sum = 0;
      for (int y = top; y < bottom; ++y)
        for (int x = left; x < right; ++x)
          sum += picture[(std::int64_t{y} * sizes.columns + x) * sizes.channels + c];
      part[i * sizes.channels + c] = static_cast<std::uint8_t>((sum + pixels / 2) / pixels);
    }
  }
}

}  // namespace

void average_squares(const std::uint8_t* picture, std::uint8_t* part, const PicturePart& sizes,
                     cudaStream_t stream) {
  start_elements(average, std::int64_t{sizes.rows_out} * sizes.columns_out, stream, picture, part, sizes,
                 Divisor(sizes.columns_out));
}

}  // namespace fleetrun::cuda
