#include "cuda/logic/channels_last.h"

namespace fleetrun::cuda {
namespace {

// Of each image the table [rows][columns] as [columns][rows].
void turn(std::int64_t images, std::int64_t rows, std::int64_t columns, const float* from, float* to) {
  for (std::int64_t image = 0; image < images; ++image, from += rows * columns, to += rows * columns)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        to[column * rows + row] = from[row * columns + column];
}

}  // namespace

void to_channels_last(const Pixels& sizes, const float* first, float* last) {
  turn(sizes.images, sizes.channels, sizes.pixels, first, last);
}

void to_channels_first(const Pixels& sizes, const float* last, float* first) {
  turn(sizes.images, sizes.pixels, sizes.channels, last, first);
}

}  // namespace fleetrun::cuda
