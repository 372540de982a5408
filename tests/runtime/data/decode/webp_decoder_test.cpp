#include "runtime/data/decode/webp_decoder.h"

#include <doctest/doctest.h>

#include "runtime/data/decode/exif_orientation.h"
#include "runtime/data/expect_error.h"
#include "runtime/data/image_files.h"

namespace fleetrun::runtime::webp_decoder_test {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

Image decode(const std::string& content) {
  Image image;
  decode_webp(bytes_of(content), "cat.webp", image);
  return image;
}

TEST_CASE("lossless WebP files keep every pixel") {
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(37, 50), std::pair(200, 3)}) {
    const Image image = noisy_image(3, height, width);
    const Image decoded = decode(make_webp(image));
    CHECK(decoded.shape == image.shape);
    CHECK(decoded.pixels == image.pixels);
  }
}

TEST_CASE("a WebP file is turned as its Exif says, which stands at its end") {
  const Image picture = noisy_image(3, 16, 24);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    Image upright = picture;
    make_upright(orientation, upright);
    const std::string file = with_webp_orientation(make_webp(picture), picture.shape, orientation);
    CHECK(decode(file).pixels == upright.pixels);
    const auto shape = probe_webp(bytes_of(file));
    REQUIRE(shape);
    CHECK(shape->height == upright.shape.height);
    CHECK(shape->width == upright.shape.width);
    CHECK_FALSE(probe_webp(bytes_of(file).first(file.size() - 10)));  // the Exif may say something else
  }
}

TEST_CASE("a WebP file is turned by an Exif with a name in front, too") {
  const Image picture = noisy_image(3, 16, 24);
  Image upright = picture;
  make_upright(6, upright);
  const std::string name("Exif\0\0", 6);
  CHECK(decode(with_webp_orientation(make_webp(picture), picture.shape, 6, name)).pixels == upright.pixels);
}

TEST_CASE("a whole WebP file that lacks the Exif that it promises is upright") {
  const std::string file = make_webp(gradient_image(3, 16, 24));
  std::string promising = with_webp_orientation(file, {3, 16, 24}, 6);
  promising.replace(promising.find("EXIF"), 4, "NONE");
  CHECK(probe_webp(bytes_of(promising)) == ImageShape{0, 16, 24});
  CHECK(decode(promising).shape == ImageShape{3, 16, 24});
}

TEST_CASE("the size of a WebP file without Exif is in its first bytes") {
  const std::string file = make_webp(gradient_image(3, 16, 24));
  const auto shape = probe_webp(bytes_of(file).first(32));
  REQUIRE(shape);
  CHECK(shape->height == 16);
  CHECK(shape->width == 24);
  CHECK_FALSE(probe_webp(bytes_of(file).first(14)));
}

TEST_CASE("a truncated WebP file is refused wherever it ends") {
  const std::string file = make_webp(noisy_image(3, 64, 64));
  for (std::size_t count = 12; count + 2 < file.size(); count += 97)
    check_error(ErrorKind::data, "cat.webp: broken WebP file", [&] { decode(file.substr(0, count)); });
}

TEST_CASE("an animated WebP file is refused by name") {
  std::string file = with_webp_orientation(make_webp(gradient_image(3, 8, 8)), {3, 8, 8}, 1);
  file[20] = 2;  // the flag of an animation
  check_error(ErrorKind::data, "cat.webp: an animated WebP file, wanted one with a single picture",
              [&] { decode(file); });
}

}  // namespace
}  // namespace fleetrun::runtime::webp_decoder_test
