#include "runtime/data/image.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels fit(const Image& image, const ImageShape& shape) {
  FitScratch scratch;
  Pixels pixels(shape.elements());
  fit_image(image, shape, scratch, pixels.data());
  return pixels;
}

TEST_CASE("an image of the right size is copied") {
  const Image image{{3, 1, 2}, {1, 2, 3, 4, 5, 6}};
  CHECK(fit(image, {3, 1, 2}) == image.pixels);
}

TEST_CASE("grey is copied into three channels, colours become luma") {
  CHECK(fit({{1, 1, 2}, {7, 9}}, {3, 1, 2}) == Pixels{7, 7, 7, 9, 9, 9});
  CHECK(fit({{3, 1, 4}, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}}, {1, 1, 4}) ==
        Pixels{76, 150, 29, 255});
}

TEST_CASE("resizing is bilinear between pixel centres and keeps the edges") {
  CHECK(fit({{1, 1, 2}, {0, 100}}, {1, 1, 4}) == Pixels{0, 25, 75, 100});
  CHECK(fit({{1, 2, 1}, {0, 100}}, {1, 4, 1}) == Pixels{0, 25, 75, 100});
  CHECK(fit({{1, 1, 4}, {0, 20, 40, 60}}, {1, 1, 2}) == Pixels{10, 50});
  CHECK(fit({{1, 1, 1}, {9}}, {1, 2, 2}) == Pixels{9, 9, 9, 9});
  CHECK(fit({{3, 1, 2}, {0, 10, 20, 100, 110, 120}}, {3, 1, 1}) == Pixels{50, 60, 70});
}

}  // namespace
}  // namespace fleetrun::runtime
