// Images with their channels last, on the host: parameters on their way to a device that keeps them so, and back.
#pragma once
#include <cstdint>

namespace fleetrun::cuda {

// Of [images, channels, rows, columns] as [images][channels][pixels].
struct Pixels {
  std::int64_t images, channels, pixels;
};

// How channels lie in an image: [outer][channels][inner].
struct Channels {
  std::int64_t outer, channels, inner;
};

void to_channels_last(const Pixels& sizes, const float* first, float* last);
void to_channels_first(const Pixels& sizes, const float* last, float* first);

}  // namespace fleetrun::cuda
