#include "runtime/data/decode/exif_orientation.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace fleetrun::runtime {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr int kLast = 8;
constexpr std::uint16_t kOrientationTag = 0x0112, kShort = 3;
constexpr std::size_t kEntryBytes = 12;  // of a directory: tag, type, count, value

// A TIFF structure, in its own order of bytes. Reads beyond the end give nothing.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) : bytes_(bytes), little_(bytes.size() >= 2 && bytes[0] == 'I') {}

  std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8U | bytes_[at + (little_ ? size - 1 - i : i)];
    return value;
  }

 private:
  Bytes bytes_;
  bool little_;
};

constexpr char kName[] = "Exif\0";  // and the zero that ends the literal

// In a JPEG file it has the name in front, and some programs write that into WebP files, too.
bool has_name(Bytes exif) {
  return exif.size() > sizeof kName && std::memcmp(exif.data(), kName, sizeof kName) == 0;
}

}  // namespace

int orientation_in(Bytes exif) {
  const Tiff tiff(has_name(exif) ? exif.subspan(sizeof kName) : exif);
  const auto directory = tiff.number(4, 4);
  const auto entries = directory ? tiff.number(*directory, 2) : std::nullopt;
  for (std::size_t i = 0; i < entries.value_or(0); ++i) {
    const std::size_t entry = std::size_t{*directory} + 2 + i * kEntryBytes;
    const auto tag = tiff.number(entry, 2);
    if (!tag) break;
    if (*tag != kOrientationTag || tiff.number(entry + 2, 2) != kShort) continue;
    const int value = static_cast<int>(tiff.number(entry + 8, 2).value_or(kUpright));
    return value >= kUpright && value <= kLast ? value : kUpright;
  }
  return kUpright;
}

int read_orientation(Bytes jpeg) {
  constexpr std::uint8_t kApp1 = 0xe1, kScan = 0xda;
  std::size_t at = 2;
  while (at + 4 <= jpeg.size() && jpeg[at] == 0xff && jpeg[at + 1] != kScan) {
    const std::size_t length = std::size_t{jpeg[at + 2]} << 8U | jpeg[at + 3];  // itself included
    if (length < 2 || jpeg.size() - at - 2 < length) break;
    const Bytes segment = jpeg.subspan(at + 4, length - 2);
    if (jpeg[at + 1] == kApp1 && has_name(segment)) return orientation_in(segment);
    at += 2 + length;
  }
  return kUpright;
}

ImageShape upright(const ImageShape& stored, int orientation) {
  if (!is_transposed(orientation)) return stored;
  return {stored.channels, stored.width, stored.height};
}

bool is_transposed(int orientation) { return orientation >= 5; }

void make_upright(int orientation, Image& image) {
  if (orientation == kUpright) return;
  const bool transposed = is_transposed(orientation);
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const ImageShape stored = image.shape;
  const ImageShape turned = upright(stored, orientation);
  if (transposed) {
    std::swap(image.source_width, image.source_height);
    std::swap(image.whole_width, image.whole_height);
  }
  std::vector<std::uint8_t> pixels(image.pixels.size());
  const auto bytes = static_cast<std::size_t>(stored.channels);
  std::uint8_t* to = pixels.data();
  for (int y = 0; y < turned.height; ++y)
    for (int x = 0; x < turned.width; ++x, to += bytes) {
      const int across = from_right ? turned.width - 1 - x : x,
                down = from_bottom ? turned.height - 1 - y : y;
      const auto row = static_cast<std::size_t>(transposed ? across : down);
      const auto column = static_cast<std::size_t>(transposed ? down : across);
      std::memcpy(to, image.pixels.data() + (row * static_cast<std::size_t>(stored.width) + column) * bytes,
                  bytes);
    }
  image.shape = turned;
  image.pixels = std::move(pixels);
}

}  // namespace fleetrun::runtime
