// Image files for tests, made in memory: what the decoders under test must read.
#pragma once
#include <png.h>
#include <turbojpeg.h>
#include <webp/encode.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

// Red grows to the right, green downwards, blue is constant: a picture that JPEG keeps well.
inline Image gradient_image(int channels, int height, int width) {
  Image image;
  image.reset({channels, height, width});
  image.pixels.clear();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const std::array<int, 4> values = {40 + 160 * x / width, 40 + 160 * y / height, 90, 200};
        image.pixels.push_back(static_cast<std::uint8_t>(values.at(static_cast<std::size_t>(c))));
      }
  return image;
}

// Noise in blocks of three by three, the same each time: a picture in which every pixel counts.
inline Image noisy_image(int channels, int height, int width) {
  Image image;
  image.reset({channels, height, width});
  image.pixels.clear();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const auto block = static_cast<std::uint32_t>((y / 3 * 1000 + x / 3) * 4 + c);
        image.pixels.push_back(static_cast<std::uint8_t>((block * 2654435761U) >> 24U));
      }
  return image;
}

// What a data set gives of an image: plane after plane.
inline std::vector<std::uint8_t> planes_of(const Image& image) {
  const auto channels = static_cast<std::size_t>(image.shape.channels);
  std::vector<std::uint8_t> planes;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = c; i < image.pixels.size(); i += channels) planes.push_back(image.pixels[i]);
  return planes;
}

// 1 channel grey, 3 RGB, 4 CMYK as Adobe stores it.
inline std::string make_jpeg(const Image& image, int flags = 0, int colours = TJSAMP_444) {
  const int format = image.shape.channels == 1 ? TJPF_GRAY : image.shape.channels == 4 ? TJPF_CMYK : TJPF_RGB;
  const int subsampling = image.shape.channels == 1 ? TJSAMP_GRAY : colours;
  tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  constexpr int kQuality = 98;
  const int status = tjCompress2(handle, image.pixels.data(), image.shape.width, 0, image.shape.height,
                                 format, &bytes, &count, subsampling, kQuality, flags);
  std::string content(reinterpret_cast<const char*>(bytes), status == 0 ? count : 0);
  tjFree(bytes);
  tjDestroy(handle);
  return content;
}

// Writes another size into the header of a JPEG file that tjCompress2 made.
inline std::string with_jpeg_size(std::string jpeg, int height, int width) {
  const std::size_t frame = jpeg.find("\xff\xc0");
  if (frame == std::string::npos) throw std::runtime_error("no SOF0 segment");
  jpeg[frame + 5] = static_cast<char>(height >> 8);
  jpeg[frame + 6] = static_cast<char>(height);
  jpeg[frame + 7] = static_cast<char>(width >> 8);
  jpeg[frame + 8] = static_cast<char>(width);
  return jpeg;
}

// What cameras say of a picture: their maker, and this orientation.
inline std::string make_exif(int orientation, bool little) {
  const auto number = [&](std::uint32_t value, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (little ? i : size - 1 - i));
    return bytes;
  };
  std::string exif = (little ? "II" : "MM") + number(42, 2) + number(8, 4);
  exif += number(2, 2);                                                               // two entries
  exif += number(0x010f, 2) + number(2, 2) + number(4, 4) + std::string("cam\0", 4);  // the maker, a text
  exif += number(0x0112, 2) + number(3, 2) + number(1, 4) +
          number(static_cast<std::uint32_t>(orientation), 2) + number(0, 2);
  exif += number(0, 4);  // no further directory
  return exif;
}

// Puts an Exif segment with this orientation after the first marker of a JPEG file.
inline std::string with_orientation(const std::string& jpeg, int orientation, bool little) {
  const std::string segment = std::string("Exif\0\0", 6) + make_exif(orientation, little);
  const std::size_t length = segment.size() + 2;
  return jpeg.substr(0, 2) + "\xff\xe1" + static_cast<char>(length >> 8) + static_cast<char>(length) +
         segment + jpeg.substr(2);
}

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

struct PngForm {
  int depth = 8;
  int colours = PNG_COLOR_TYPE_RGB;
  int interlace = PNG_INTERLACE_NONE;
};

// `rows` are the bytes of the file's rows; a palette, where the form wants one, is red, green, blue, white.
inline std::string make_png(const PngForm& form, int width, int height, const std::string& rows) {
  std::string content;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &content,
      [](png_structp writer, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(writer))
            ->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), form.depth,
               form.colours, form.interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const std::array<png_color, 4> palette = {{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 255}}};
  if (form.colours == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), palette.size());
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
    pointers.push_back(reinterpret_cast<png_bytep>(const_cast<char*>(rows.data())) +
                       y * (rows.size() / static_cast<std::size_t>(height)));
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return content;
}

inline std::string make_png(const Image& image) {
  const PngForm form = {8, image.shape.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                        PNG_INTERLACE_NONE};
  return make_png(form, image.shape.width, image.shape.height, {image.pixels.begin(), image.pixels.end()});
}

// Writes another size into the header of a PNG file, with its checksum.
inline std::string with_png_size(std::string png, std::uint32_t height, std::uint32_t width) {
  png.replace(16, 8, big_endian(width) + big_endian(height));
  const uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + 12, 17);
  png.replace(29, 4, big_endian(static_cast<std::uint32_t>(checksum)));
  return png;
}

// Puts a chunk of this type and content at an offset of a PNG file, with its checksum.
inline std::string with_png_chunk(std::string png, std::size_t at, const std::string& type,
                                  const std::string& content) {
  const std::string named = type + content;
  const uLong checksum =
      crc32(0, reinterpret_cast<const Bytef*>(named.data()), static_cast<uInt>(named.size()));
  return png.insert(at, big_endian(static_cast<std::uint32_t>(content.size())) + named +
                            big_endian(static_cast<std::uint32_t>(checksum)));
}

inline std::string little_endian(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

// Of an image with 3 channels, lossless.
inline std::string make_webp(const Image& image) {
  std::uint8_t* bytes = nullptr;
  const std::size_t count = WebPEncodeLosslessRGB(image.pixels.data(), image.shape.width, image.shape.height,
                                                  3 * image.shape.width, &bytes);
  std::string content(reinterpret_cast<const char*>(bytes), count);
  WebPFree(bytes);
  return content;
}

// The file as one with Exif that says this orientation (RFC 9649, section 2.7).
inline std::string with_webp_orientation(const std::string& webp, const ImageShape& shape, int orientation,
                                         const std::string& before_exif = "") {
  constexpr std::uint32_t kHasExif = 8;
  const auto chunk = [](const std::string& name, const std::string& content) {
    return name + little_endian(static_cast<std::uint32_t>(content.size())) + content +
           std::string(content.size() % 2, '\0');
  };
  const auto side = [](int pixels) { return little_endian(static_cast<std::uint32_t>(pixels - 1), 3); };
  const std::string chunks = "WEBP" +
                             chunk("VP8X", little_endian(kHasExif) + side(shape.width) + side(shape.height)) +
                             webp.substr(12) + chunk("EXIF", before_exif + make_exif(orientation, true));
  return "RIFF" + little_endian(static_cast<std::uint32_t>(chunks.size())) + chunks;
}

struct BmpForm {
  int bits = 24;
  bool from_top = false;
  bool has_masks = false;  // BI_BITFIELDS
};

// Of an image with 3 channels; with up to 8 bits its pixels must be in the palette black, white, red, green.
inline std::string make_bmp(const Image& image, const BmpForm& form = {}) {
  const int width = image.shape.width, height = image.shape.height;
  const std::string palette =
      form.bits > 8 ? "" : std::string("\0\0\0\0\xff\xff\xff\0\0\0\xff\0\0\xff\0\0", 16);
  const std::string masks =
      form.has_masks ? little_endian(0xff0000) + little_endian(0xff00) + little_endian(0xff) : "";
  const auto entry_of = [&](const std::uint8_t* pixel) {
    const int white = pixel[2] > 0 ? 1 : 0;
    return white != 0 ? 1U : pixel[0] > 0 ? 2U : pixel[1] > 0 ? 3U : 0U;
  };
  std::string rows;
  for (int i = 0; i < height; ++i) {
    const int y = form.from_top ? i : height - 1 - i;
    std::string row(static_cast<std::size_t>((width * form.bits + 31) / 32 * 4), '\0');
    for (int x = 0; x < width; ++x) {
      const std::uint8_t* pixel = image.pixels.data() + 3 * (static_cast<std::size_t>(y) * width + x);
      const auto at = static_cast<std::size_t>(x) * static_cast<std::size_t>(form.bits) / 8;
      if (form.bits > 8)
        for (std::size_t c = 0; c < 3; ++c) row[at + c] = static_cast<char>(pixel[2 - c]);
      else
        row[at] = static_cast<char>(static_cast<unsigned char>(row[at]) |
                                    entry_of(pixel) << (8 - form.bits - x * form.bits % 8));
    }
    rows += row;
  }
  const auto before = static_cast<std::uint32_t>(54 + masks.size() + palette.size());
  return "BM" + little_endian(before + static_cast<std::uint32_t>(rows.size())) + little_endian(0) +
         little_endian(before) + little_endian(40) + little_endian(static_cast<std::uint32_t>(width)) +
         little_endian(static_cast<std::uint32_t>(form.from_top ? -height : height)) + little_endian(1, 2) +
         little_endian(static_cast<std::uint32_t>(form.bits), 2) + little_endian(form.has_masks ? 3 : 0) +
         little_endian(0) + little_endian(0) + little_endian(0) +
         little_endian(static_cast<std::uint32_t>(palette.size() / 4)) + little_endian(0) + masks + palette +
         rows;
}

// An IDX file of unsigned bytes.
inline std::string make_idx(std::initializer_list<std::uint32_t> dimensions, const std::string& content) {
  std::string bytes = big_endian(0x0800U + static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint32_t dimension : dimensions) bytes += big_endian(dimension);
  return bytes + content;
}

inline std::string gzip(const std::string& content) {
  constexpr int kGzipWrapper = 15 + 16;  // zlib.h, deflateInit2
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWrapper, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace fleetrun::runtime
