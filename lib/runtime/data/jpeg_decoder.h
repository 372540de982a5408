// JPEG by libjpeg-turbo: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/framing.h"
#include "runtime/data/image.h"

namespace fleetrun::runtime {

// Keeps libjpeg-turbo's state from image to image: one for each thread.
class JpegDecoder {
 public:
  JpegDecoder();

  // Width and height by the header; nothing when the bytes do not reach that far or are broken.
  std::optional<ImageShape> probe(std::span<const std::uint8_t> bytes);

  // Upright, and as much smaller as `wanted` allows. Throws Error(data) that names `file` when it is truncated, broken or
  // too large.
  void decode(std::span<const std::uint8_t> bytes, const std::string& file, const Wanted& wanted,
              Image& image);

 private:
  struct Closer {
    void operator()(void* handle) const;
  };

  void start();
  // Nothing when the header cannot be read; `problem` then says why.
  std::optional<ImageShape> read_header(std::span<const std::uint8_t> bytes, std::string& problem);
  // What libjpeg-turbo has to say about its last call; then starts anew, because a failed call leaves a state
  // behind that spoils the next image.
  std::string take_problem();

  std::unique_ptr<void, Closer> handle_;  // a tjhandle
};

}  // namespace fleetrun::runtime
