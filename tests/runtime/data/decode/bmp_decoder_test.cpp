#include "runtime/data/decode/bmp_decoder.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "runtime/data/expect_error.h"
#include "runtime/data/image_files.h"

namespace fleetrun::runtime::bmp_decoder_test {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

Image decode(const std::string& content) {
  Image image;
  decode_bmp(bytes_of(content), "cat.bmp", image);
  return image;
}

void check_refused(const std::string& content, const std::string& words) {
  check_error(ErrorKind::data, "cat.bmp: " + words, [&] { decode(content); });
}

std::string with_number(std::string file, std::size_t at, std::uint32_t value, int bytes = 4) {
  return file.replace(at, static_cast<std::size_t>(bytes), little_endian(value, bytes));
}

// Of black, white and, where there are more than two colours, red and green.
Image colourful(int colours, int height, int width) {
  constexpr std::array<std::array<std::uint8_t, 3>, 4> kPalette = {
      {{0, 0, 0}, {255, 255, 255}, {255, 0, 0}, {0, 255, 0}}};
  Image image;
  image.reset({3, height, width});
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = kPalette[(i / 3 * 7 + i / 3 / 5) % static_cast<std::size_t>(colours)][i % 3];
  return image;
}

TEST_CASE(
    "BMP files of 24 and 32 bits keep every pixel, from the bottom and from the top, with masks and without") {
  const Image image = noisy_image(3, 9, 13);  // a row is padded
  for (const int bits : {24, 32})
    for (const bool from_top : {false, true})
      for (const bool has_masks : {false, bits == 32})
        CHECK(decode(make_bmp(image, {bits, from_top, has_masks})).pixels == image.pixels);
}

TEST_CASE("BMP files with a palette have its colours") {
  for (const int bits : {1, 4, 8}) {
    CAPTURE(bits);
    const Image image = colourful(bits == 1 ? 2 : 4, 5, 11);
    CHECK(decode(make_bmp(image, {.bits = bits})).pixels == image.pixels);
  }
}

TEST_CASE("the size is in the header") {
  const std::string file = make_bmp(gradient_image(3, 16, 24), {.from_top = true});
  CHECK(probe_bmp(bytes_of(file).first(54)) == ImageShape{0, 16, 24});
  CHECK_FALSE(probe_bmp(bytes_of(file).first(53)));
}

TEST_CASE("a truncated BMP file is refused wherever it ends") {
  for (const int bits : {1, 24}) {
    const std::string file = make_bmp(colourful(2, 9, 13), {.bits = bits});
    for (std::size_t count = 2; count < file.size(); ++count)
      check_refused(file.substr(0, count), "broken BMP file: the file is truncated");
  }
}

TEST_CASE("what a BMP file says wrongly, or in a way that nobody writes, is refused in its own words") {
  const std::string file = make_bmp(gradient_image(3, 4, 4)),
                    palette = make_bmp(colourful(4, 4, 4), {.bits = 8});
  check_refused(with_number(file, 18, 0), "the image has 0x4 pixels");
  check_refused(with_number(file, 18, 0xffffffff), "the image has -1x4 pixels");
  check_refused(with_number(with_number(file, 18, 60000), 22, 60000), "the header says 60000x60000 pixels");
  check_refused(with_number(file, 22, 0x80000000), "the header says 4x2147483648 pixels");
  check_refused(with_number(file, 10, 0xffffffff), "broken BMP file: the file is truncated");
  for (const std::uint32_t inside : {0, 14, 53})
    check_refused(
        with_number(file, 10, inside),
        fmt::format("broken BMP file: the pixels begin at byte {}, wanted at least 54, the end of the header",
                    inside));
  check_refused(with_number(make_bmp(gradient_image(3, 4, 4), {32, false, true}), 10, 54),
                "broken BMP file: the pixels begin at byte 54, wanted at least 66, the end of the header");
  check_refused(with_number(file, 14, 0xffffffff), "broken BMP file: the pixels begin at byte 54");
  check_refused(with_number(file, 14, 12),
                "a BMP file that fleetrun cannot read: the header has 12 bytes, wanted at least 40");
  check_refused(with_number(file, 28, 16, 2), "a BMP file that fleetrun cannot read: a pixel has 16 bits");
  check_refused(with_number(file, 28, 0, 2), "a BMP file that fleetrun cannot read: a pixel has 0 bits");
  check_refused(with_number(file, 30, 1), "a BMP file that fleetrun cannot read: the compression is 1");
  check_refused(with_number(make_bmp(gradient_image(3, 4, 4), {32, false, true}), 54, 0xff),
                "a BMP file that fleetrun cannot read: the colours are in unusual bits");
  check_refused(with_number(palette, 46, 1), "broken BMP file: a pixel has a colour that the palette lacks");
}

}  // namespace
}  // namespace fleetrun::runtime::bmp_decoder_test
