#include "runtime/data/decode/bmp_decoder.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

// Microsoft, "Bitmap Storage": BITMAPFILEHEADER, then BITMAPINFOHEADER or a longer one that begins like it. All numbers are
// little-endian.
constexpr std::size_t kFileHeader = 14;  // "BM", the file's size, 4 reserved bytes, the offset of the pixels
constexpr std::size_t kInfoHeader = 40;
constexpr std::size_t kMaskBytes =
    12;  // red, green and blue; follow BITMAPINFOHEADER and are part of longer headers
constexpr std::uint32_t kUncompressed = 0;  // BI_RGB
constexpr std::uint32_t kBitFields = 3;     // BI_BITFIELDS: uncompressed, and masks say where the colours are
constexpr std::array<std::uint32_t, 3> kUsualMasks = {0xff0000, 0xff00, 0xff};
constexpr std::size_t kPaletteEntry = 4;  // blue, green, red, 0
constexpr std::size_t kRowUnit = 32;      // bits
constexpr int kBmpChannels = 3;

struct BmpHeader {
  std::int64_t width = 0, height = 0;
  bool from_top = false;
  std::size_t pixels_at = 0, header_end = 0, palette_entries = 0;
  unsigned bits = 0;  // of a pixel
  std::uint32_t compression = 0;
  bool has_usual_masks = true;

  std::size_t row_bytes() const {
    return (static_cast<std::size_t>(width) * bits + kRowUnit - 1) / kRowUnit * (kRowUnit / 8);
  }
};

std::uint32_t number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} | std::uint32_t{bytes[at + 1]} << 8U | std::uint32_t{bytes[at + 2]} << 16U |
         std::uint32_t{bytes[at + 3]} << 24U;
}

bool masks_are_usual(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < kUsualMasks.size(); ++i)
    if (number_at(bytes, kFileHeader + kInfoHeader + 4 * i) != kUsualMasks[i]) return false;
  return true;
}

// Nothing when the bytes end before the header does.
std::optional<BmpHeader> read_bmp_header(std::span<const std::uint8_t> bytes) {
  if (!is_bmp(bytes) || bytes.size() < kFileHeader + kInfoHeader) return std::nullopt;
  const std::size_t info_bytes = number_at(bytes, kFileHeader);
  const auto height = static_cast<std::int32_t>(number_at(bytes, 22));
  BmpHeader header = {.width = static_cast<std::int32_t>(number_at(bytes, 18)),
                      .height = std::abs(std::int64_t{height}),
                      .from_top = height < 0,
                      .pixels_at = number_at(bytes, 10),
                      .header_end = kFileHeader + info_bytes,
                      .palette_entries = number_at(bytes, 46),
                      .bits = number_at(bytes, 26) >> 16U,  // after the number of planes
                      .compression = number_at(bytes, 30)};
  if (header.compression == kBitFields) {
    if (bytes.size() < kFileHeader + kInfoHeader + kMaskBytes) return std::nullopt;
    header.has_usual_masks = masks_are_usual(bytes);
    header.header_end = std::max(header.header_end, kFileHeader + kInfoHeader + kMaskBytes);
  }
  if (header.bits <= 8 && header.palette_entries == 0) header.palette_entries = std::size_t{1} << header.bits;
  return header;
}

// What we do not read; empty: nothing.
std::string find_unsupported(std::span<const std::uint8_t> bytes, const BmpHeader& header) {
  if (number_at(bytes, kFileHeader) < kInfoHeader)
    return fmt::format("the header has {} bytes, wanted at least {}", number_at(bytes, kFileHeader),
                       kInfoHeader);
  const bool has_masks = header.compression == kBitFields && header.bits == 32;
  if (header.compression != kUncompressed && !has_masks)
    return fmt::format("the compression is {}, wanted an uncompressed file", header.compression);
  if (!header.has_usual_masks) return "the colours are in unusual bits, wanted blue, green, red, unused";
  for (const unsigned bits : {1U, 4U, 8U, 24U, 32U})
    if (header.bits == bits) return "";
  return fmt::format("a pixel has {} bits, wanted 1, 4, 8, 24 or 32", header.bits);
}

// A row whose pixels are numbers of colours in the palette: blue, green, red, 0. False: there is no such colour.
bool read_palette_row(const std::uint8_t* row, const BmpHeader& header, std::span<const std::uint8_t> palette,
                      std::uint8_t* pixels) {
  const unsigned mask = (1U << header.bits) - 1;
  const std::size_t per_byte = 8 / header.bits;
  for (std::size_t x = 0; x < static_cast<std::size_t>(header.width); ++x, pixels += kBmpChannels) {
    const std::size_t shift = 8 - header.bits * (x % per_byte + 1);
    const std::size_t entry = (row[x / per_byte] >> shift & mask) * kPaletteEntry;
    if (entry + kPaletteEntry > palette.size()) return false;
    for (std::size_t c = 0; c < kBmpChannels; ++c) pixels[c] = palette[entry + 2 - c];
  }
  return true;
}

void read_colour_row(const std::uint8_t* row, const BmpHeader& header, std::uint8_t* pixels) {
  const std::size_t step = header.bits / 8;
  for (std::int64_t x = 0; x < header.width; ++x, row += step, pixels += kBmpChannels)
    for (std::size_t c = 0; c < kBmpChannels; ++c) pixels[c] = row[2 - c];
}

std::span<const std::uint8_t> palette_of(std::span<const std::uint8_t> bytes, const BmpHeader& header) {
  if (header.header_end >= bytes.size()) return {};
  const std::span<const std::uint8_t> rest = bytes.subspan(header.header_end);
  return rest.first(std::min(rest.size(), header.palette_entries * kPaletteEntry));
}

}  // namespace

bool is_bmp(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 'B' && bytes[1] == 'M';
}

std::optional<ImageShape> probe_bmp(std::span<const std::uint8_t> bytes) {
  const std::optional<BmpHeader> header = read_bmp_header(bytes);
  if (!header || header->width < 1 || header->height < 1 || header->width > kMaxPixels ||
      header->height > kMaxPixels)
    return std::nullopt;
  return ImageShape{0, static_cast<int>(header->height), static_cast<int>(header->width)};
}

void decode_bmp(std::span<const std::uint8_t> bytes, const std::string& file, Image& image) {
  const auto broken = [&](std::string_view why) {
    return Error(ErrorKind::data, fmt::format("{}: broken BMP file: {}", file, why));
  };
  const std::optional<BmpHeader> header = read_bmp_header(bytes);
  if (!header) throw broken("the file is truncated");
  if (const std::string unsupported = find_unsupported(bytes, *header); !unsupported.empty())
    throw Error(ErrorKind::data,
                fmt::format("{}: a BMP file that fleetrun cannot read: {}", file, unsupported));
  check_image_size(file, header->width, header->height);
  const auto height = static_cast<std::size_t>(header->height);
  if (header->pixels_at < header->header_end)
    throw broken(fmt::format("the pixels begin at byte {}, wanted at least {}, the end of the header",
                             header->pixels_at, header->header_end));
  if (header->pixels_at > bytes.size() || bytes.size() - header->pixels_at < height * header->row_bytes())
    throw broken("the file is truncated");
  image.reset({kBmpChannels, static_cast<int>(header->height), static_cast<int>(header->width)});
  const std::span<const std::uint8_t> palette = palette_of(bytes, *header);
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t stored = header->from_top ? y : height - 1 - y;
    const std::uint8_t* row = bytes.data() + header->pixels_at + stored * header->row_bytes();
    std::uint8_t* pixels = image.pixels.data() + y * static_cast<std::size_t>(header->width) * kBmpChannels;
    if (header->bits > 8)
      read_colour_row(row, *header, pixels);
    else if (!read_palette_row(row, *header, palette, pixels))
      throw broken("a pixel has a colour that the palette lacks");
  }
}

}  // namespace fleetrun::runtime
