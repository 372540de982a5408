#include "runtime/kernels/cpu/loops/depthwise_rows.h"

#include <cstring>

#include "base/number/vector_clones.h"

namespace fleetrun::runtime::cpu {
namespace {

// The channels of a pixel. Never passed to a function that is not inlined.
using Pixel8 = float __attribute__((vector_size(8 * sizeof(float))));
using Pixel16 = float __attribute__((vector_size(16 * sizeof(float))));

// Floats ahead of those that are read for the first time: what comes between two rows of the image hides it from the
// processor, which would begin to fetch the next one too late.
constexpr std::int64_t kAhead = 512;

template <typename Pixel>
constexpr std::int64_t kChannels = sizeof(Pixel) / sizeof(float);

template <typename Pixel>
FLEETRUN_VECTOR_LOOP void load(Pixel& pixel, const float* from) {
  std::memcpy(&pixel, from, sizeof pixel);
}

template <typename Pixel>
FLEETRUN_VECTOR_LOOP void store(const Pixel& pixel, float* to) {
  std::memcpy(to, &pixel, sizeof pixel);
}

// `width` pixels from pixel j on, their sums in registers. `step`: in_step when that is known to the compiler, else 0.
template <typename Pixel, int width, int step, bool masked>
FLEETRUN_VECTOR_LOOP void sum_block(const TapSum& sum, std::int64_t j) {
  const std::int64_t in_step = (step != 0 ? step : sum.in_step) * kChannels<Pixel>;
  Pixel total[width], input, weight = {};
  if (sum.start != nullptr) load(weight, sum.start);
  for (int i = 0; i < width; ++i) total[i] = weight;
  for (int t = 0; t < sum.count; ++t) {
    load(weight, sum.weights[t]);
    const float* const from = sum.taps[t] + j * in_step;
    for (int i = 0; i < width; ++i) {
      load(input, from + i * in_step);
      total[i] += input * weight;
    }
  }
  const std::int64_t out_step = sum.out_step * kChannels<Pixel>;
  float* const out = sum.out + j * out_step;
  const float* const mask = masked ? sum.mask + j * out_step : nullptr;
  for (int i = 0; i < width; ++i) {
    if constexpr (masked) {
      __builtin_prefetch(mask + i * out_step + kAhead);
      load(input, mask + i * out_step);
      total[i] = input > 0.0F ? total[i] : Pixel{};
    }
    store(total[i], out + i * out_step);
  }
}

// In blocks, of which the last may do again what the one before did.
template <typename Pixel, int width, int step, bool masked>
FLEETRUN_VECTOR_LOOP void sum_blocks(const TapSum& sum) {
  std::int64_t j = 0;
  for (; j + width <= sum.pixels; j += width) sum_block<Pixel, width, step, masked>(sum, j);
  if (j < sum.pixels) sum_block<Pixel, width, step, masked>(sum, sum.pixels - width);
}

template <typename Pixel, int step, bool masked>
FLEETRUN_VECTOR_LOOP void sum_row(const TapSum& sum) {
  if (sum.pixels % 7 == 0) return sum_blocks<Pixel, 7, step, masked>(sum);  // rows of ImageNet's images
  if (sum.pixels >= 8) return sum_blocks<Pixel, 8, step, masked>(sum);
  if (sum.pixels >= 4) return sum_blocks<Pixel, 4, step, masked>(sum);
  sum_blocks<Pixel, 1, step, masked>(sum);
}

template <typename Pixel>
FLEETRUN_VECTOR_LOOP void sum_row_of(const TapSum& sum) {
  if (sum.mask != nullptr) return sum_row<Pixel, 1, true>(sum);
  switch (sum.in_step) {
    case 1:
      return sum_row<Pixel, 1, false>(sum);
    case 2:
      return sum_row<Pixel, 2, false>(sum);
    default:
      return sum_row<Pixel, 0, false>(sum);
  }
}

template <typename Pixel, int width>
FLEETRUN_VECTOR_LOOP void add_products(const TapProducts& products, int first) {
  const std::int64_t in_step = products.in_step * kChannels<Pixel>;
  float* const sums = products.sums + first * kChannels<Pixel>;
  Pixel total[width], input, dy;
  const float* taps[width];
  for (int t = 0; t < width; ++t) {
    taps[t] = products.taps[first + t];
    load(total[t], sums + t * kChannels<Pixel>);
  }
  for (std::int64_t j = 0; j < products.pixels; ++j) {
    __builtin_prefetch(products.dy + j * kChannels<Pixel> + kAhead);
    load(dy, products.dy + j * kChannels<Pixel>);
    for (int t = 0; t < width; ++t) {
      load(input, taps[t] + j * in_step);
      total[t] += input * dy;
    }
  }
  for (int t = 0; t < width; ++t) store(total[t], sums + t * kChannels<Pixel>);
}

template <typename Pixel>
FLEETRUN_VECTOR_LOOP void add_products_of(const TapProducts& products) {
  constexpr int kNine = 9;  // taps of a 3x3 window: sums that grow side by side
  int t = 0;
  for (; t + kNine <= products.count; t += kNine) add_products<Pixel, kNine>(products, t);
  for (; t < products.count; ++t) add_products<Pixel, 1>(products, t);
}

template <typename Pixel>
FLEETRUN_VECTOR_LOOP void copy_row(const float* x, float* y, std::int64_t floats, bool rectify) {
  Pixel pixel;
  for (std::int64_t i = 0; i < floats; i += kChannels<Pixel>) {
    __builtin_prefetch(x + i + kAhead);
    load(pixel, x + i);
    if (rectify) pixel = pixel < 0.0F ? Pixel{} : pixel;  // NaN stays NaN
    store(pixel, y + i);
  }
}

FLEETRUN_VECTOR_LOOP void sum_taps_loop(int channels, const TapSum& sum) {
  if (channels == 16)
    sum_row_of<Pixel16>(sum);
  else
    sum_row_of<Pixel8>(sum);
}

FLEETRUN_VECTOR_LOOP void add_tap_products_loop(int channels, const TapProducts& products) {
  if (channels == 16)
    add_products_of<Pixel16>(products);
  else
    add_products_of<Pixel8>(products);
}

FLEETRUN_VECTOR_LOOP void copy_pixels_loop(int channels, const float* x, float* y, std::int64_t floats,
                                           bool rectify) {
  if (channels == 16)
    copy_row<Pixel16>(x, y, floats, rectify);
  else
    copy_row<Pixel8>(x, y, floats, rectify);
}

}  // namespace

void sum_taps(int channels, const TapSum& sum) { vector_clones<sum_taps_loop>(channels, sum); }

void add_tap_products(int channels, const TapProducts& products) {
  vector_clones<add_tap_products_loop>(channels, products);
}

void copy_pixels(int channels, const float* x, float* y, std::int64_t floats, bool rectify) {
  vector_clones<copy_pixels_loop>(channels, x, y, floats, rectify);
}

}  // namespace fleetrun::runtime::cpu
