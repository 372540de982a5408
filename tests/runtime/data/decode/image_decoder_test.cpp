#include "runtime/data/decode/image_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "runtime/data/expect_error.h"
#include "runtime/data/image_files.h"

namespace fleetrun::runtime::image_decoder_test {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

Image decode(const std::string& content) {
  Image image;
  ImageDecoder().decode(bytes_of(content), "cat.jpg", {.shape = {3, 1000, 1000}}, image);
  return image;
}

int largest_difference(const Image& a, const Image& b) {
  REQUIRE(a.shape == b.shape);
  REQUIRE(a.pixels.size() == b.pixels.size());
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i)
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

void check_refused(const std::string& content, const std::string& words) {
  check_error(ErrorKind::data, "cat.jpg: " + words, [&] { decode(content); });
}

TEST_CASE("JPEG files keep their picture, baseline and progressive, coloured and grey") {
  constexpr int kJpegLoss = 6;  // grey levels at quality 98
  for (const int channels : {1, 3})
    for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
      const Image image = gradient_image(channels, 37, 50);
      CHECK(largest_difference(decode(make_jpeg(image, flags)), image) <= kJpegLoss);
    }
}

TEST_CASE("a PNG file whose first chunk is no header is refused, whatever size that chunk seems to have") {
  const std::string png = make_png(gradient_image(3, 40, 40));
  check_refused(with_png_chunk(png, 8, "aaAa", big_endian(4) + big_endian(4)),
                "broken PNG file: its first chunk is not IHDR");
}

TEST_CASE("inverted CMYK becomes RGB") {
  Image inks;
  inks.reset({4, 16, 16});
  inks.pixels.clear();
  for (int i = 0; i < 256; ++i)
    for (const int ink : {255, 128, 0, 204}) inks.pixels.push_back(static_cast<std::uint8_t>(ink));
  const Image image = decode(make_jpeg(inks));
  CHECK(image.shape == ImageShape{3, 16, 16});
  REQUIRE(image.pixels.size() == 3 * 256);
  CHECK(std::abs(image.pixels[0] - 204) <= 4);
  CHECK(std::abs(image.pixels[1] - 102) <= 4);
  CHECK(std::abs(image.pixels[2] - 0) <= 4);
}

TEST_CASE("of a JPEG file only what is shown is decoded, and what is shown is the same") {
  const ImageShape shape = {3, 48, 48};
  FitScratch scratch;
  const auto show = [&](const std::string& jpeg, const Wanted& decoded_for, const Framing& framing) {
    Image image;
    ImageDecoder().decode(bytes_of(jpeg), "cat.jpg", decoded_for, image);
    std::vector<std::uint8_t> planes(shape.elements());
    fit_image(image, region_of(framing, image.source_width, image.source_height, shape), shape, scratch,
              planes.data());
    return std::pair(planes, image.pixels.size());
  };
  const Image photograph = noisy_image(3, 187, 250);
  for (const int flags : {0, TJFLAG_PROGRESSIVE})
    for (const int colours : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440}) {
      const std::string jpeg = make_jpeg(photograph, flags, colours);
      std::size_t smaller = 0;
      for (std::int32_t sample = 0; sample < 30; ++sample) {
        CAPTURE(sample);
        const Framing framing = {.augment = job::Augment::random_resized_crop, .sample = sample};
        // As small as the region allows, but all of it: what a decoder that knows of no regions would give.
        const Region region = region_of(framing, 250, 187, shape);
        const int reduction = reduction_of({framing, shape}, 250, 187);
        const Wanted whole = {.framing = {}, .shape = {3, 187 / reduction, 250 / reduction}};
        const auto [cut, cut_bytes] = show(jpeg, {framing, shape}, framing);
        const auto [from_whole, whole_bytes] = show(jpeg, whole, framing);
        if (region.width * region.height < 0.5 * 250 * 187) {
          CHECK(cut_bytes < whole_bytes);
          ++smaller;
        }
        int largest = 0;
        for (std::size_t i = 0; i < cut.size(); ++i)
          largest = std::max(largest, std::abs(cut[i] - from_whole[i]));
        CHECK(largest <= 1);  // positions are rounded differently
      }
      CHECK(smaller > 5);
    }
}

TEST_CASE("a JPEG file that was cut off is refused though the missing part is not shown") {
  const std::string jpeg = make_jpeg(noisy_image(3, 200, 200));
  Wanted wanted = {.framing = {.augment = job::Augment::random_resized_crop}, .shape = {3, 20, 20}};
  const auto bottom = [&] {
    const Region region = region_of(wanted.framing, 200, 200, wanted.shape);
    return region.top + region.height;
  };
  while (bottom() > 100) ++wanted.framing.sample;
  Image image;
  ImageDecoder().decode(bytes_of(jpeg), "cat.jpg", wanted, image);
  check_error(ErrorKind::data, "cat.jpg: broken JPEG file: Premature end of JPEG file", [&] {
    ImageDecoder().decode(bytes_of(jpeg.substr(0, jpeg.size() * 9 / 10)), "cat.jpg", wanted, image);
  });
}

// Fills the parts that it is asked for with one number, and remembers them.
class FillingDecoder : public DeviceJpegDecoder {
 public:
  FillingDecoder(std::vector<JpegPart>& parts, bool decodes) : parts_(parts), decodes_(decodes) {}
  bool decode(std::span<const std::uint8_t>, const JpegPart& part, std::uint8_t* pixels) override {
    parts_.push_back(part);
    std::fill_n(pixels, part.bytes(), std::uint8_t{7});
    return decodes_;
  }

 private:
  std::vector<JpegPart>& parts_;
  bool decodes_;
};

struct OnDevice {
  std::vector<JpegPart> parts;
  JpegCounts counts;
  Image image;

  OnDevice(const std::string& content, const Wanted& wanted, bool decodes = true) {
    ImageDecoder decoder;
    decoder.decode_jpegs_on(std::make_unique<FillingDecoder>(parts, decodes), counts);
    decoder.decode(bytes_of(content), "cat.jpg", wanted, image);
  }
};

TEST_CASE("a device is asked for the part of a JPEG file that is shown, as much smaller as it may be") {
  const std::string jpeg = make_jpeg(gradient_image(3, 187, 250));
  const OnDevice whole(jpeg, {.framing = {}, .shape = {3, 46, 62}});
  REQUIRE(whole.parts.size() == 1);
  const JpegPart part = whole.parts.front();
  CHECK(part.picture == ImageShape{3, 187, 250});
  CHECK(part.reduction == 4);
  CHECK(std::array{part.left, part.top, part.columns, part.rows} == std::array{0, 0, 63, 47});
  CHECK(whole.image.pixels == std::vector<std::uint8_t>(part.bytes(), 7));
  CHECK(whole.image.source_width == 250);
  CHECK(whole.image.whole_width == 63);
  const OnDevice turned(with_orientation(jpeg, 6, true), {.framing = {}, .shape = {3, 62, 46}});
  CHECK(turned.image.shape == ImageShape{3, 63, 47});
  const Framing crop = {.augment = job::Augment::resize_crop};
  const JpegPart middle = OnDevice(jpeg, {.framing = crop, .shape = {3, 150, 150}}).parts.front();
  const Region region = region_of(crop, 250, 187, {3, 150, 150});
  CHECK(middle.reduction == 1);
  CHECK(middle.left <= region.left);
  CHECK(middle.left + middle.columns >= region.left + region.width);
  CHECK(middle.columns < 250);
}

TEST_CASE("a device is asked for usual JPEG files only, and the CPU decodes what it does not") {
  const Image picture = gradient_image(3, 30, 40);
  const Wanted wanted = {.framing = {}, .shape = {3, 30, 40}};
  for (const std::string& file :
       {make_jpeg(picture, TJFLAG_PROGRESSIVE), make_jpeg(gradient_image(4, 30, 40)), make_png(picture)})
    CHECK(OnDevice(file, wanted).parts.empty());
  const OnDevice refused(make_jpeg(picture), wanted, false);
  CHECK(refused.parts.size() == 1);
  CHECK(refused.counts.by_cpu.load() == 1);
  CHECK(OnDevice(make_jpeg(picture), wanted).counts.by_device.load() == 1);
  CHECK(refused.image.pixels == decode(make_jpeg(picture)).pixels);
}

TEST_CASE("no device is asked for a JPEG file before the file was looked at for damage") {
  const std::string jpeg = make_jpeg(noisy_image(3, 200, 200));
  const Wanted wanted = {.framing = {.augment = job::Augment::random_resized_crop, .to_the_end = true},
                         .shape = {3, 20, 20}};
  CHECK(OnDevice(jpeg, wanted).parts.size() == 1);
  Wanted again = wanted;
  again.framing.to_the_end = false;  // it was cut off later
  for (const Wanted& reading : {wanted, again})
    check_error(ErrorKind::data, "cat.jpg: broken JPEG file: Premature end of JPEG file",
                [&] { OnDevice(jpeg.substr(0, jpeg.size() * 9 / 10), reading); });
}

TEST_CASE("PNG files of every kind become 8 bits a channel without transparency") {
  CHECK(decode(make_png(gradient_image(3, 7, 9))).pixels == gradient_image(3, 7, 9).pixels);
  CHECK(decode(make_png(gradient_image(1, 7, 9))).pixels == gradient_image(1, 7, 9).pixels);
  using Pixels = std::vector<std::uint8_t>;
  const Image deep =
      decode(make_png({16, PNG_COLOR_TYPE_RGB}, 1, 1, std::string("\x80\x80\xff\xff\x00\x00", 6)));
  CHECK(deep.pixels == Pixels{0x80, 0xff, 0});
  const Image deep_grey =
      decode(make_png({16, PNG_COLOR_TYPE_GRAY}, 2, 1, std::string("\x12\x12\xfe\xfe", 4)));
  CHECK(deep_grey.shape == ImageShape{1, 1, 2});
  CHECK(deep_grey.pixels == Pixels{0x12, 0xfe});
  const Image clear =
      decode(make_png({8, PNG_COLOR_TYPE_RGB_ALPHA}, 1, 1, std::string("\x01\x02\x03\x00", 4)));
  CHECK(clear.pixels == Pixels{1, 2, 3});
  const Image clear_grey = decode(make_png({8, PNG_COLOR_TYPE_GRAY_ALPHA}, 1, 1, std::string("\x09\x00", 2)));
  CHECK(clear_grey.pixels == Pixels{9});
  const Image palette = decode(make_png({2, PNG_COLOR_TYPE_PALETTE}, 4, 1, std::string("\x1b", 1)));
  CHECK(palette.pixels == Pixels{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255});
  const Image black_and_white = decode(make_png({1, PNG_COLOR_TYPE_GRAY}, 8, 1, std::string("\xa0", 1)));
  CHECK(black_and_white.pixels == Pixels{255, 0, 255, 0, 0, 0, 0, 0});
}

TEST_CASE("an interlaced PNG file is the same picture") {
  const Image image = gradient_image(3, 11, 13);
  const std::string rows(image.pixels.begin(), image.pixels.end());
  CHECK(decode(make_png({8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_ADAM7}, 13, 11, rows)).pixels == image.pixels);
}

TEST_CASE("a probe tells the size from the first bytes") {
  ImageDecoder decoder;
  const std::string jpeg = make_jpeg(gradient_image(3, 200, 300));
  const auto found = decoder.probe(bytes_of(jpeg).first(1024));
  REQUIRE(found);
  CHECK(found->height == 200);
  CHECK(found->width == 300);
  const auto png = decoder.probe(bytes_of(make_png(gradient_image(1, 5, 6))).first(64));
  REQUIRE(png);
  CHECK(png->height == 5);
  CHECK(png->width == 6);
  CHECK_FALSE(decoder.probe(bytes_of(jpeg).first(30)));
  CHECK_FALSE(decoder.probe(bytes_of(make_png(gradient_image(1, 5, 6))).first(24)));  // eXIf may follow
  CHECK_FALSE(decoder.probe({}));
}

TEST_CASE("files that are not images are refused by name") {
  check_refused("", "the file is empty");
  check_refused("<!DOCTYPE html><html></html>",
                "no JPEG, PNG, WebP or BMP file, it starts with \"<!DOCTYP\"");
  check_refused("\xff\xd8\xff", "broken JPEG file");
  check_refused(std::string("\xff\xd8\xff\xe0", 4) + std::string(100, '\0'), "broken JPEG file");
  check_refused("\x89PNG\r\n\x1a\n", "broken PNG file: the file is truncated");
}

TEST_CASE("a truncated file is refused wherever it ends") {
  const std::string jpeg = make_jpeg(gradient_image(3, 64, 64));
  for (std::size_t count = 3; count + 2 < jpeg.size(); count += 97)
    check_refused(jpeg.substr(0, count), "broken JPEG");
  check_refused(jpeg.substr(0, jpeg.size() - 20), "broken JPEG file: Premature end of JPEG file");
  const std::string png = make_png(gradient_image(3, 64, 64));
  for (std::size_t count = 8; count < png.size(); count += 37)
    check_refused(png.substr(0, count), "broken PNG");
}

TEST_CASE("a flipped bit in a PNG file is found by its checksum") {
  std::string png = make_png(gradient_image(3, 16, 16));
  png[png.size() / 2] = static_cast<char>(png[png.size() / 2] ^ 1);
  check_refused(png, "broken PNG file");
}

TEST_CASE("a header of 60000x60000 is refused before memory is taken") {
  check_refused(with_jpeg_size(make_jpeg(gradient_image(3, 16, 16)), 60000, 60000),
                "the header says 60000x60000 pixels, the limit is 67108864 pixels");
  check_refused(with_png_size(make_png(gradient_image(3, 16, 16)), 60000, 60000),
                "the header says 60000x60000");
  check_refused(with_png_size(make_png(gradient_image(3, 16, 16)), 0, 16), "the image has 16x0 pixels");
}

TEST_CASE("a broken file leaves nothing behind for the next one") {
  ImageDecoder decoder;
  Image image;
  const std::string good = make_jpeg(gradient_image(3, 20, 20));
  const std::string half = good.substr(0, good.size() / 2);
  check_error(ErrorKind::data, "half.jpg", [&] {
    decoder.decode(bytes_of(half), "half.jpg", {.shape = {3, 1000, 1000}}, image);
  });
  decoder.decode(bytes_of(good), "good.jpg", {.shape = {3, 1000, 1000}}, image);
  CHECK(image.pixels == decode(good).pixels);
}

}  // namespace
}  // namespace fleetrun::runtime::image_decoder_test
