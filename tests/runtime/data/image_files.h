// Image files for tests, made in memory: what the decoders under test must read.
#pragma once
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/data/image.h"

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
