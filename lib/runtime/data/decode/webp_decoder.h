// WebP by libwebp: lossy and lossless, brought to 8 bits, upright; transparency is dropped.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

bool is_webp(std::span<const std::uint8_t> bytes);

// Width and height of the upright image (channels 0); nothing when the bytes do not reach that far. Exif stands after the
// pixels, so a file that has some must be there as a whole.
std::optional<ImageShape> probe_webp(std::span<const std::uint8_t> bytes);

// Throws Error(data) that names `file` when it is truncated, broken, too large or an animation.
void decode_webp(std::span<const std::uint8_t> bytes, const std::string& file, Image& image);

}  // namespace fleetrun::runtime
