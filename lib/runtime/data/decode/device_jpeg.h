// The decoder of JPEG files that a device has (data.use_dali). Each thread that reads has one of its own, beside libjpeg-turbo.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

// A rectangle of a picture that was made smaller as average_blocks() makes it.
struct JpegPart {
  ImageShape picture;         // as the file has it; 1 channel: grey, 3: red, green and blue
  int reduction = 1;          // pixels on each side of a square that becomes one pixel
  int left = 0, top = 0;      // of the rectangle, in pixels of the smaller picture
  int columns = 0, rows = 0;  // the same

  std::size_t bytes() const {
    return static_cast<std::size_t>(picture.channels) * static_cast<std::size_t>(columns) *
           static_cast<std::size_t>(rows);
  }
};

class DeviceJpegDecoder {
 public:
  virtual ~DeviceJpegDecoder() = default;

  // Writes part.bytes() bytes: rows from the top, the channels of a pixel side by side. Returns false if it does not decode this file, which
  // depends on the file alone. The file is a whole baseline file with one scan. Throws Error(internal) if the device fails, Error(os) without
  // memory.
  virtual bool decode(std::span<const std::uint8_t> bytes, const JpegPart& part, std::uint8_t* pixels) = 0;
};

// JPEG files that were decoded; any thread counts.
struct JpegCounts {
  std::atomic<std::int64_t> by_device = 0, by_cpu = 0;
};

using MakeJpegDecoder = std::function<std::unique_ptr<DeviceJpegDecoder>()>;

}  // namespace fleetrun::runtime
