// JPEG by libjpeg-turbo: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK. A device may decode the usual ones among them.
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

namespace fleetrun::runtime {

// Keeps libjpeg-turbo's state from image to image: one for each thread.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();

  // From now on `device` decodes baseline files of grey and YCbCr pictures, where it can. `counts` outlives this.
  void decode_on(std::unique_ptr<DeviceJpegDecoder> device, JpegCounts& counts) {
    device_ = std::move(device);
    counts_ = &counts;
  }

  // Width and height of the upright image by the header; nothing when the bytes do not reach that far or are broken.
  std::optional<ImageShape> probe(std::span<const std::uint8_t> bytes);

  // Upright, as much smaller as `wanted` allows, and without what its framing does not show. Throws Error(data) that names
  // `file` when it is truncated, too large, or broken as far as it was looked at.
  void decode(std::span<const std::uint8_t> bytes, const std::string& file, const Wanted& wanted,
              Image& image);

 private:
  struct Codec;  // libjpeg's state; its headers stay in the .cpp

  bool decode_on_device(std::span<const std::uint8_t> bytes, const ImageShape& stored, int reduction,
                        const Region* region, Image& image);

  std::unique_ptr<Codec> codec_;
  std::unique_ptr<DeviceJpegDecoder> device_;  // null: there is none
  JpegCounts* counts_ = nullptr;               // with a device
};

}  // namespace fleetrun::runtime
