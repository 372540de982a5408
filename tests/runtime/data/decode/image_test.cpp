#include "runtime/data/decode/image.h"

#include <doctest/doctest.h>

#include "runtime/data/decode/picture.h"

namespace fleetrun::runtime::image_test {
namespace {

using test::picture, test::Pixels;

Pixels fit(const Image& image, const Region& region, const ImageShape& shape) {
  FitScratch scratch;
  Pixels pixels(shape.elements());
  fit_image(image, region, shape, scratch, pixels.data());
  return pixels;
}

Pixels fit(const Image& image, const ImageShape& shape) {
  return fit(image, {0, 0, static_cast<double>(image.source_width), static_cast<double>(image.source_height)},
             shape);
}

TEST_CASE("an image of the right size is copied") {
  const Image image = picture({3, 1, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(fit(image, {3, 1, 2}) == Pixels{1, 4, 2, 5, 3, 6});
}

TEST_CASE("grey is copied into three channels, colours become luma") {
  CHECK(fit(picture({1, 1, 2}, {7, 9}), {3, 1, 2}) == Pixels{7, 9, 7, 9, 7, 9});
  CHECK(fit(picture({3, 1, 4}, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}), {1, 1, 4}) ==
        Pixels{76, 150, 29, 255});
}

TEST_CASE("resizing is bilinear between pixel centres and keeps the edges") {
  CHECK(fit(picture({1, 1, 2}, {0, 100}), {1, 1, 4}) == Pixels{0, 25, 75, 100});
  CHECK(fit(picture({1, 2, 1}, {0, 100}), {1, 4, 1}) == Pixels{0, 25, 75, 100});
  CHECK(fit(picture({1, 1, 4}, {0, 20, 40, 60}), {1, 1, 2}) == Pixels{10, 50});
  CHECK(fit(picture({1, 1, 1}, {9}), {1, 2, 2}) == Pixels{9, 9, 9, 9});
  CHECK(fit(picture({3, 1, 2}, {0, 10, 20, 100, 110, 120}), {3, 1, 1}) == Pixels{50, 60, 70});
}

TEST_CASE("a region is cut out without looking at what lies around it") {
  const Image image = picture({1, 3, 4}, {9, 9, 9, 9, 9, 0, 100, 9, 9, 9, 9, 9});
  CHECK(fit(image, {1, 1, 2, 1}, {1, 1, 2}) == Pixels{0, 100});
  CHECK(fit(image, {1, 1, 2, 1}, {1, 1, 4}) == Pixels{0, 25, 75, 100});
  CHECK(fit(image, {1, 1, 2, 1}, {1, 2, 1}) == Pixels{50, 50});
}

TEST_CASE("a region is given in pixels of the source, however small the image was decoded") {
  Image image = picture({1, 2, 4}, {0, 10, 20, 30, 40, 50, 60, 70});
  image.source_width = 16;
  image.source_height = 8;
  CHECK(fit(image, {4, 4, 8, 4}, {1, 1, 2}) == Pixels{50, 60});
}

TEST_CASE("an image that was decoded to the wanted size is copied when all of it is wanted") {
  Image image = picture({1, 1, 3}, {1, 2, 3});
  image.source_width = 6;
  image.source_height = 2;
  CHECK(fit(image, {1, 1, 3}) == Pixels{1, 2, 3});
}

}  // namespace
}  // namespace fleetrun::runtime::image_test
