#include "runtime/data/decode/exif_orientation.h"

#include <doctest/doctest.h>

#include <random>

#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/image_files.h"

namespace fleetrun::runtime::exif_orientation_test {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

TEST_CASE("the orientation is read from either order of bytes") {
  const std::string jpeg = make_jpeg(gradient_image(3, 16, 16));
  CHECK(read_orientation(bytes_of(jpeg)) == 1);
  for (const bool little : {false, true})
    for (int orientation = 1; orientation <= 8; ++orientation)
      CHECK(read_orientation(bytes_of(with_orientation(jpeg, orientation, little))) == orientation);
  CHECK(read_orientation(bytes_of(with_orientation(jpeg, 9, true))) == 1);
  CHECK(read_orientation(bytes_of(with_orientation(jpeg, 0, true))) == 1);
}

TEST_CASE("broken Exif data is upright, wherever it breaks off and whatever it holds") {
  const std::string jpeg = with_orientation(make_jpeg(gradient_image(3, 16, 16)), 6, false);
  for (std::size_t length = 0; length < 80; ++length) {
    const int found = read_orientation(bytes_of(jpeg).first(length));
    CHECK((found == 1 || found == 6));
  }
  std::minstd_rand random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string other = jpeg;
    for (int k = 0; k < 3; ++k) other[2 + random() % 60] = static_cast<char>(random());
    const int found = read_orientation(bytes_of(other));
    CHECK((found >= 1 && found <= 8));
  }
}

TEST_CASE("every orientation is brought upright") {
  // 1 2 3
  // 4 5 6
  const std::vector<std::vector<std::uint8_t>> upright = {
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},   // 1 to 4, two rows
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};  // 5 to 8, three rows
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    Image image;
    image.reset({1, 2, 3});
    image.pixels = {1, 2, 3, 4, 5, 6};
    make_upright(orientation, image);
    CHECK(image.pixels == upright[static_cast<std::size_t>(orientation - 1)]);
    CHECK(image.shape == (orientation < 5 ? ImageShape{1, 2, 3} : ImageShape{1, 3, 2}));
    CHECK(image.source_width == image.shape.width);
  }
}

TEST_CASE("a photograph that was taken on its side is decoded upright") {
  const std::string jpeg = with_orientation(make_jpeg(gradient_image(3, 32, 64)), 6, true);
  Image image;
  ImageDecoder().decode(bytes_of(jpeg), "a.jpg", {.shape = {3, 64, 32}}, image);
  CHECK(image.shape == ImageShape{3, 64, 32});
  // What grew to the right grows downwards: red at the top is dark.
  CHECK(image.pixels[0] < 60);
  CHECK(image.pixels[3 * 32 * 63] > 170);
}

}  // namespace
}  // namespace fleetrun::runtime::exif_orientation_test
