// Image files to pixels: JPEG, PNG, WebP and BMP, told apart by their first bytes, whatever the file is called.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/data/decode/device_jpeg.h"
#include "runtime/data/decode/framing.h"
#include "runtime/data/decode/image.h"
#include "runtime/data/decode/jpeg_decoder.h"

namespace fleetrun::runtime {

// Keeps state between images: one for each thread.
class ImageDecoder {
 public:
  // As JpegDecoder::decode_on.
  void decode_jpegs_on(std::unique_ptr<DeviceJpegDecoder> device, JpegCounts& counts) {
    jpeg_.decode_on(std::move(device), counts);
  }

  // Width and height by the header. Nothing when the bytes, maybe only the start of a file, do not tell.
  std::optional<ImageShape> probe(std::span<const std::uint8_t> bytes);

  // Gives 1 channel for grey images, else 3, of 8 bits each, upright, and as much smaller as `wanted` allows where that
  // is faster.
  // Throws Error(data) that names `file`: of another format, too large, truncated, broken.
  void decode(std::span<const std::uint8_t> bytes, const std::string& file, const Wanted& wanted,
              Image& image);

 private:
  JpegDecoder jpeg_;
};

}  // namespace fleetrun::runtime
