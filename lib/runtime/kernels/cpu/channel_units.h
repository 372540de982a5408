// How kernels that know a factor or a sum per channel walk over an image, in whatever layout it has: what batch_norm, its
// fusions and its synchronised form share.
#pragma once
#include <algorithm>
#include <span>

#include "runtime/kernels/cpu/channel_blocks.h"
#include "runtime/kernels/cpu/channel_rows.h"
#include "runtime/kernels/cpu/elementwise.h"

namespace fleetrun::runtime::cpu {

// Parts of an image that are looked at by themselves: the channels of one image that lie side by side, up to kLanes;
// in a plain image one channel, whose pixels are taken as rows of kLanes.
class ChannelUnits {
 public:
  ChannelUnits(const OpView& op, const Value& image)
      : images_(image.shape[0]), channels_(image.shape[1]), pixels_(image.shape[2] * image.shape[3]) {
    elements_of(op, image);
    const ChannelBlocks blocks = *channel_blocks(image);
    inner_ = blocks.inner;
    groups_ = (inner_ + kLanes - 1) / kLanes;
    per_image_ = blocks.outer / images_ * groups_;
  }

  std::int64_t images() const { return images_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t pixels() const { return pixels_; }
  std::int64_t values_per_channel() const { return images_ * pixels_; }
  // Of an array with a place for each channel: those that only fill up a block, and a whole row, included.
  std::int64_t padded_channels() const { return per_image_ / groups_ * inner_ + kLanes; }
  bool one_channel() const { return inner_ == 1; }

  std::int64_t image_of(std::int64_t unit) const { return unit / per_image_; }
  std::int64_t channel_of(std::int64_t unit) const {
    const std::int64_t place = unit % per_image_;
    return place / groups_ * inner_ + place % groups_ * kLanes;
  }

  // body(offset of the first float, rows) for the rows of a unit, a last one that is not full by itself.
  template <typename Body>
  void rows(std::int64_t unit, Body&& body) const {
    const std::int64_t block = unit / groups_, lane = unit % groups_ * kLanes;
    const std::int64_t offset = block * pixels_ * inner_ + lane;
    if (!one_channel()) {
      body(offset, Rows{pixels_, inner_, static_cast<int>(std::min<std::int64_t>(kLanes, inner_ - lane))});
      return;
    }
    const std::int64_t full = pixels_ / kLanes, rest = pixels_ % kLanes;
    if (full > 0) body(offset, Rows{.count = full});
    if (rest > 0) body(offset + full * kLanes, Rows{.count = 1, .lanes = static_cast<int>(rest)});
  }

  // body(unit) for all units, on the threads of the team.
  template <typename Body>
  void parallel(Body&& body) const {
    const std::int64_t floats = pixels_ * (one_channel() ? 1 : std::min<std::int64_t>(inner_, kLanes));
    parallel_for(images_ * per_image_, kElementsPerThread / floats,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t unit = begin; unit < end; ++unit) body(unit);
                 });
  }

  // What the lanes of a unit take from an array with a place for each channel.
  LaneFactors factors(std::int64_t unit, const float* of_channels) const {
    LaneFactors factors;
    const float* const first = of_channels + channel_of(unit);
    if (one_channel())
      factors.fill(*first);
    else
      std::copy_n(first, kLanes, factors.begin());
    return factors;
  }

 private:
  std::int64_t images_, channels_, pixels_;
  std::int64_t inner_ = 1;      // channels side by side
  std::int64_t groups_ = 1;     // of kLanes among those
  std::int64_t per_image_ = 0;  // units
};

// Arrays in scratch memory. f64: of each image and channel, and of each channel; f32: of each channel.
class ChannelArrays {
 public:
  explicit ChannelArrays(const ChannelUnits& units)
      : images_(units.images()), padded_(units.padded_channels()) {}

  std::size_t bytes() const {
    return static_cast<std::size_t>(padded_) *
           (kSums * static_cast<std::size_t>(images_ + 1) * sizeof(double) + kFactors * sizeof(float));
  }
  // Two sums: `which` is 0 or 1. Row `image` of it; the row behind the last image is the total.
  double* sums(void* scratch, int which, std::int64_t image) const {
    return static_cast<double*>(scratch) + (which * (images_ + 1) + image) * padded_;
  }
  double* totals(void* scratch, int which) const { return sums(scratch, which, images_); }
  float* factors(void* scratch, int which) const {
    return reinterpret_cast<float*>(sums(scratch, kSums, 0)) + which * padded_;
  }
  std::span<float> all_factors(void* scratch) const {
    return {factors(scratch, 0), static_cast<std::size_t>(kFactors * padded_)};
  }

 private:
  static constexpr int kSums = 2, kFactors = 5;
  std::int64_t images_, padded_;
};

}  // namespace fleetrun::runtime::cpu
