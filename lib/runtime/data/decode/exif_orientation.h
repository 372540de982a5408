// How a camera was held, as image files say it (Exif 2.3, tag 0x0112, section 4.6.4).
#pragma once
#include <cstdint>
#include <span>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

constexpr int kUpright = 1;

// 1 to 8; kUpright where the file says nothing, or nothing that makes sense.
int read_orientation(std::span<const std::uint8_t> jpeg);

// Of the bytes of Exif themselves: a TIFF structure, as PNG files hold it.
int orientation_in(std::span<const std::uint8_t> exif);

// The shape of an image of this shape in the file.
ImageShape upright(const ImageShape& stored, int orientation);

bool is_transposed(int orientation);  // rows of the file are columns of the upright image

// Turns or mirrors a whole image that was stored with this orientation so that it stands upright.
void make_upright(int orientation, Image& image);

}  // namespace fleetrun::runtime
