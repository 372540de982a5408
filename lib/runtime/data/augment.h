// From a data set's bytes to what a network takes: a random crop, a mirror, and (pixel - mean) / std as float
// planes. A device can do the same (ops/crop_mirror_normalize.cpp).
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/data/decode/framing.h"
#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

constexpr int kMaxChannels = 4;

// Which part of the image is seen, in pixels; what lies outside of it is black.
struct View {
  int top = 0;
  int left = 0;
  bool flip = false;  // left and right exchanged
  bool operator==(const View&) const = default;
};

// Of an image that framing.h has brought to the shape.
View plan_view(const Framing& framing);

// A view as the op crop_mirror_normalize reads it: top, left, mirrored, present.
constexpr int kViewNumbers = 4;
using ViewNumbers = std::array<std::int32_t, kViewNumbers>;
inline ViewNumbers numbers_of(const View& view) { return {view.top, view.left, view.flip ? 1 : 0, 1}; }
constexpr ViewNumbers kNoImage = {0, 0, 0, 0};

struct Normalisation {
  std::array<float, kMaxChannels> mean{};
  std::array<float, kMaxChannels> scale{};  // 1 / std
};

// From the job's lists, of one number for each channel; an empty mean is 0, an empty std 255: pixels become 0
// to 1. Throws Error(config) when the lists do not fit the channels or a std is not above 0.
Normalisation make_normalisation(const std::vector<double>& mean, const std::vector<double>& deviation,
                                 int channels);

// From [channels, height, width] bytes to as many floats. `row` is kept from call to call.
void write_planes(const std::uint8_t* pixels, const ImageShape& shape, const View& view,
                  const Normalisation& normalisation, std::vector<std::uint8_t>& row, float* planes);

}  // namespace fleetrun::runtime
