#include "runtime/data/decode/image_decoder.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/decode/average_blocks.h"
#include "runtime/data/decode/bmp_decoder.h"
#include "runtime/data/decode/png_decoder.h"
#include "runtime/data/decode/webp_decoder.h"

namespace fleetrun::runtime {
namespace {

bool is_jpeg(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

// The first bytes as a person may read them: `"<!DOCTYP"`.
std::string describe_start(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes.first(std::min<std::size_t>(bytes.size(), 8)))
    text += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
  return text;
}

}  // namespace

std::optional<ImageShape> ImageDecoder::probe(std::span<const std::uint8_t> bytes) {
  if (is_jpeg(bytes)) return jpeg_.probe(bytes);
  if (is_webp(bytes)) return probe_webp(bytes);
  if (is_bmp(bytes)) return probe_bmp(bytes);
  return probe_png(bytes);
}

void ImageDecoder::decode(std::span<const std::uint8_t> bytes, const std::string& file, const Wanted& wanted,
                          Image& image) {
  if (bytes.empty()) throw Error(ErrorKind::data, fmt::format("{}: the file is empty", file));
  if (is_jpeg(bytes)) return jpeg_.decode(bytes, file, wanted, image);
  if (is_png(bytes))
    decode_png(bytes, file, image);
  else if (is_webp(bytes))
    decode_webp(bytes, file, image);
  else if (is_bmp(bytes))
    decode_bmp(bytes, file, image);
  else
    throw Error(ErrorKind::data, fmt::format("{}: no JPEG, PNG, WebP or BMP file, it starts with \"{}\"",
                                             file, describe_start(bytes)));
  average_blocks(reduction_of(wanted, image.shape.width, image.shape.height), image);
}

}  // namespace fleetrun::runtime
