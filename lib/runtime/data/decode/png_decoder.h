// PNG by libpng: every colour type and depth, interlaced too, brought to 8 bits, upright; transparency is dropped.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

bool is_png(std::span<const std::uint8_t> bytes);

// Width and height of the upright image by what lies in front of the pixels (channels 0); nothing when the bytes do not reach
// that far.
std::optional<ImageShape> probe_png(std::span<const std::uint8_t> bytes);

// Throws Error(data) that names `file` when it is truncated, broken or too large.
void decode_png(std::span<const std::uint8_t> bytes, const std::string& file, Image& image);

}  // namespace fleetrun::runtime
