// BMP as Windows and image editors write it: 1, 4, 8, 24 or 32 bits a pixel, uncompressed, rows from the bottom or from the top;
// transparency is dropped. No library of the distribution that we link reads BMP.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

bool is_bmp(std::span<const std::uint8_t> bytes);

// Width and height by the header (channels 0); nothing when the bytes do not reach that far.
std::optional<ImageShape> probe_bmp(std::span<const std::uint8_t> bytes);

// Throws Error(data) that names `file` when it is truncated, broken, too large, compressed, or has another number of bits.
void decode_bmp(std::span<const std::uint8_t> bytes, const std::string& file, Image& image);

}  // namespace fleetrun::runtime
