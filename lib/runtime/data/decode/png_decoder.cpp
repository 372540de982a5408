#include "runtime/data/decode/png_decoder.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/decode/exif_orientation.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kSignatureBytes = 8;  // PNG specification 5.2
constexpr std::size_t kChunkHeader = 8;     // length and type (5.3)
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kWidthAt = 16;  // after the signature, a length and "IHDR"

// libpng leaves by longjmp, so what it works with lives here, outside the functions that it leaves.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::uint8_t> rest;
  std::array<char, 128> problem{};

  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

void give_bytes(png_structp png, png_bytep target, std::size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "the file is truncated");
  std::memcpy(target, reader->rest.data(), count);
  reader->rest = reader->rest.subspan(count);
}

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->problem.data(), reader->problem.size(), "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}  // the image is decoded all the same

bool start(Reader& reader) {
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
  if (reader.png == nullptr) return false;
  reader.info = png_create_info_struct(reader.png);
  return reader.info != nullptr;
}

// The header, and what libpng shall make of the pixels.
bool read_header(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;  // NOLINT: how libpng reports
  png_set_read_fn(reader.png, &reader, give_bytes);
  png_read_info(reader.png, reader.info);
  png_set_expand(reader.png);  // palettes, 1 to 4 bits
  png_set_scale_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_rows(Reader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;  // NOLINT: how libpng reports
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

int big_endian(std::span<const std::uint8_t> bytes) {
  return static_cast<int>((std::uint32_t{bytes[0]} & 0x7fU) << 24U | std::uint32_t{bytes[1]} << 16U |
                          std::uint32_t{bytes[2]} << 8U | std::uint32_t{bytes[3]});
}

// Channels 0. Nothing when the first chunk is not IHDR: libpng skips unknown chunks before it, and another size would be read here.
std::optional<ImageShape> stored_shape(std::span<const std::uint8_t> bytes) {
  if (!is_png(bytes) || bytes.size() < kWidthAt + 8) return std::nullopt;
  const std::string_view first(reinterpret_cast<const char*>(bytes.data()) + kWidthAt - 4, 4);
  if (first != "IHDR") return std::nullopt;
  return ImageShape{0, big_endian(bytes.subspan(kWidthAt + 4)), big_endian(bytes.subspan(kWidthAt))};
}

// As the chunk eXIf says it in front of the pixels, where browsers look, too. Nothing when the bytes end before those.
std::optional<int> png_orientation(std::span<const std::uint8_t> bytes) {
  int orientation = kUpright;
  for (std::size_t at = kSignatureBytes; bytes.size() - at >= kChunkHeader;) {
    const std::size_t length = static_cast<std::size_t>(big_endian(bytes.subspan(at)));
    const std::string_view type(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    if (type == "IDAT") return orientation;
    if (bytes.size() - at < kChunkHeader + length + kChecksumBytes) break;
    if (type == "eXIf") orientation = orientation_in(bytes.subspan(at + kChunkHeader, length));
    at += kChunkHeader + length + kChecksumBytes;
  }
  return std::nullopt;
}

}  // namespace

bool is_png(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= kSignatureBytes && png_sig_cmp(bytes.data(), 0, kSignatureBytes) == 0;
}

std::optional<ImageShape> probe_png(std::span<const std::uint8_t> bytes) {
  const std::optional<ImageShape> stored = stored_shape(bytes);
  const std::optional<int> orientation = stored ? png_orientation(bytes) : std::nullopt;
  return orientation ? std::optional(upright(*stored, *orientation)) : std::nullopt;
}

void decode_png(std::span<const std::uint8_t> bytes, const std::string& file, Image& image) {
  const std::optional<ImageShape> size = stored_shape(bytes);
  if (!size)
    throw Error(ErrorKind::data, fmt::format("{}: broken PNG file: {}", file,
                                             bytes.size() < kWidthAt + 8 ? "the file is truncated"
                                                                         : "its first chunk is not IHDR"));
  check_image_size(file, size->width, size->height);
  Reader reader;
  reader.rest = bytes;
  if (!start(reader)) throw Error(ErrorKind::os, "starting the PNG decoder: out of memory");
  const auto broken = [&] {
    return Error(ErrorKind::data, fmt::format("{}: broken PNG file: {}", file, reader.problem.data()));
  };
  if (!read_header(reader)) throw broken();
  image.reset({png_get_channels(reader.png, reader.info), size->height, size->width});
  std::vector<png_bytep> rows(static_cast<std::size_t>(size->height));
  const std::size_t row_bytes = image.shape.elements() / rows.size();
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
  if (!read_rows(reader, rows.data())) throw broken();
  make_upright(png_orientation(bytes).value_or(kUpright), image);
}

}  // namespace fleetrun::runtime
