// Images that a test writes pixel by pixel.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime::test {

using Pixels = std::vector<std::uint8_t>;

inline Image picture(const ImageShape& shape, const Pixels& pixels) {
  Image image;
  image.reset(shape);
  image.pixels = pixels;
  return image;
}

}  // namespace fleetrun::runtime::test
