// The loops of depthwise convolutions, over rows of pixels whose channels lie side by side, 8 or 16 of them: a pixel.
#pragma once
#include <cstdint>

namespace fleetrun::runtime::cpu {

// A row of pixels that are sums over taps: out[j] = start + sum over t of taps[t][j * in_step] * weights[t].
struct TapSum {
  const float* const* taps = nullptr;     // where each tap sees the first pixel's input
  const float* const* weights = nullptr;  // of each tap, one for each channel
  int count = 0;                          // of taps
  std::int64_t pixels = 0;
  std::int64_t in_step = 1, out_step = 1;  // pixels
  const float* start = nullptr;            // one for each channel; null: 0
  // Steps like out: where it is not above 0, out is 0. Null: nowhere. With a mask in_step is 1.
  const float* mask = nullptr;
  float* out = nullptr;
};
void sum_taps(int channels, const TapSum& sum);

// sums[t] += sum over j of taps[t][j * in_step] * dy[j], for each channel.
struct TapProducts {
  const float* const* taps = nullptr;
  int count = 0;
  std::int64_t pixels = 0;
  std::int64_t in_step = 1;  // pixels
  const float* dy = nullptr;
  float* sums = nullptr;  // pixel after pixel
};
void add_tap_products(int channels, const TapProducts& products);

// y = x, or relu(x).
void copy_pixels(int channels, const float* x, float* y, std::int64_t floats, bool rectify);

}  // namespace fleetrun::runtime::cpu
