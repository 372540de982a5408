#include "runtime/data/decode/webp_decoder.h"

#include <webp/decode.h>

#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/decode/exif_orientation.h"

namespace fleetrun::runtime {
namespace {

// The container (RFC 9649, section 2): "RIFF", a size, "WEBP", then chunks of a name, a size and content, padded to even sizes.
constexpr std::size_t kRiffHeader = 12;
constexpr std::size_t kChunkName = 4;
constexpr std::size_t kChunkStart = 8;
constexpr std::uint8_t kHasExif = 0x08;  // of the flags, the first byte in the chunk VP8X
constexpr int kWebpChannels = 3;

std::string_view name_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, kChunkName};
}

std::size_t size_at(std::span<const std::uint8_t> bytes) {
  return std::size_t{bytes[0]} | std::size_t{bytes[1]} << 8U | std::size_t{bytes[2]} << 16U |
         std::size_t{bytes[3]} << 24U;
}

bool has_exif(std::span<const std::uint8_t> bytes) {
  return bytes.size() > kRiffHeader + kChunkStart && name_at(bytes, kRiffHeader) == "VP8X" &&
         (bytes[kRiffHeader + kChunkStart] & kHasExif) != 0;
}

// Nothing when the file says that it has Exif, and the bytes end before. A whole file may lack it all the same.
std::optional<int> webp_orientation(std::span<const std::uint8_t> bytes) {
  if (!has_exif(bytes)) return kUpright;
  for (std::size_t at = kRiffHeader; bytes.size() - at >= kChunkStart;) {
    const std::size_t length = size_at(bytes.subspan(at + kChunkName));
    if (bytes.size() - at - kChunkStart < length) break;
    if (name_at(bytes, at) == "EXIF") return orientation_in(bytes.subspan(at + kChunkStart, length));
    at += kChunkStart + length + length % 2;
    if (at > bytes.size()) break;
  }
  const bool is_whole = bytes.size() - kChunkStart >= size_at(bytes.subspan(kChunkName));
  return is_whole ? std::optional(kUpright) : std::nullopt;
}

std::string_view describe(VP8StatusCode status) {
  return status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED ? "the file is truncated"
                                                                                : "its content is damaged";
}

}  // namespace

bool is_webp(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= kRiffHeader && name_at(bytes, 0) == "RIFF" && name_at(bytes, 8) == "WEBP";
}

std::optional<ImageShape> probe_webp(std::span<const std::uint8_t> bytes) {
  WebPBitstreamFeatures features{};
  if (!is_webp(bytes) || WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK)
    return std::nullopt;
  const std::optional<int> orientation = webp_orientation(bytes);
  if (!orientation) return std::nullopt;
  return upright(ImageShape{0, features.height, features.width}, *orientation);
}

void decode_webp(std::span<const std::uint8_t> bytes, const std::string& file, Image& image) {
  const auto broken = [&](VP8StatusCode status) {
    return Error(ErrorKind::data, fmt::format("{}: broken WebP file: {}", file, describe(status)));
  };
  WebPDecoderConfig config{};
  if (WebPInitDecoderConfig(&config) == 0)
    throw Error(ErrorKind::os, "starting the WebP decoder: the library has another version");
  if (const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &config.input);
      status != VP8_STATUS_OK)
    throw broken(status);
  if (config.input.has_animation != 0)
    throw Error(ErrorKind::data,
                fmt::format("{}: an animated WebP file, wanted one with a single picture", file));
  check_image_size(file, config.input.width, config.input.height);
  image.reset({kWebpChannels, config.input.height, config.input.width});
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data(), config.input.width * kWebpChannels, image.pixels.size()};
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  if (status == VP8_STATUS_OUT_OF_MEMORY)
    throw Error(ErrorKind::os, fmt::format("no memory to decode {}", file));
  if (status != VP8_STATUS_OK) throw broken(status);
  make_upright(webp_orientation(bytes).value_or(kUpright), image);
}

}  // namespace fleetrun::runtime
