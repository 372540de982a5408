// How kernels that know a factor or a sum per channel walk over an image, in whatever layout it has: what batch_norm, its
// fusions and its synchronised form share.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

#include "runtime/kernels/cpu/loops/channel_blocks.h"
#include "runtime/kernels/cpu/loops/channel_rows.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {

// Blocks of channels [first, last), of all images.
struct ChannelPart {
  std::int64_t first = 0, last = 0;
  bool whole = true;  // all of them, on all threads of the team; else on the thread that has the part
};

// Parts of an image that are looked at by themselves: the channels of one image that lie side by side; in a plain image one
// channel, whose pixels are taken as rows of kLanes. Where more than kLanes channels lie side by side, the pixels are cut
// into strips that a cache holds.
class ChannelUnits {
 public:
  ChannelUnits(const OpView& op, const Value& image)
      : images_(image.shape[0]), channels_(image.shape[1]), pixels_(image.shape[2] * image.shape[3]) {
    wide_or_narrow_elements(op, image);
    element_bytes_ = static_cast<std::int64_t>(size_of(image.dtype));
    const ChannelBlocks blocks = *channel_blocks(image);
    inner_ = blocks.inner;
    blocks_ = blocks.outer / images_;
    if (inner_ > kLanes) {
      strip_ = std::min(pixels_, std::max(kShortestStrip, kStripBytes / (inner_ * element_bytes_)));
      strips_ = (pixels_ + strip_ - 1) / strip_;
    }
  }

  std::int64_t images() const { return images_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t pixels() const { return pixels_; }
  std::int64_t values_per_channel() const { return images_ * pixels_; }
  // Of an array with a place for each channel: those that only fill up a block, and a whole row, included.
  std::int64_t padded_channels() const { return blocks_ * inner_ + kLanes; }
  bool one_channel() const { return inner_ == 1; }

  // Strips of all images: what has sums of its own.
  std::int64_t strips() const { return images_ * strips_; }
  std::int64_t pixels_of(std::int64_t strip) const {
    return strips_ == 1 ? pixels_ : std::min(strip_, pixels_ - strip % strips_ * strip_);
  }
  std::int64_t strip_of(std::int64_t unit) const { return unit / blocks_; }
  std::int64_t channel_of(std::int64_t unit) const { return unit % blocks_ * inner_; }

  // An element of the image or of one like it.
  std::byte* at(const RunContext& context, ValueId image, std::int64_t element) const {
    return static_cast<std::byte*>(context.data[image]) + element * element_bytes_;
  }

  // body(offset of the first element, rows) for the rows of a unit, a last one that is not full by itself.
  template <typename Body>
  void rows(std::int64_t unit, Body&& body) const {
    const std::int64_t strip = strip_of(unit), block = strip / strips_ * blocks_ + unit % blocks_;
    const std::int64_t offset = (block * pixels_ + strip % strips_ * strip_) * inner_;
    const bool is_narrow = element_bytes_ < static_cast<std::int64_t>(sizeof(float));
    if (!one_channel()) {
      body(offset, Rows{pixels_of(strip), inner_, inner_, is_narrow});
      return;
    }
    const std::int64_t full = pixels_ / kLanes, rest = pixels_ % kLanes;
    if (full > 0) body(offset, Rows{.count = full, .is_narrow = is_narrow});
    if (rest > 0) body(offset + full * kLanes, Rows{.count = 1, .lanes = rest, .is_narrow = is_narrow});
  }

  ChannelPart whole() const { return {0, blocks_, true}; }

  // body(part) for parts that are all channels together, for work that looks at each part more than once: few enough at a
  // time for the second look to find them in the second cache, where that can be.
  template <typename Body>
  void parts(Body&& body) const {
    const std::int64_t size = blocks_of_part(), parts = (blocks_ + size - 1) / size;
    if (parts < kPartsPerThread * omp_get_max_threads()) return body(whole());
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part)
        body(ChannelPart{part * size, std::min(blocks_, (part + 1) * size), false});
    });
  }

  // body(unit) for all units of a part, on the threads of the team if it is the whole.
  template <typename Body>
  void each(const ChannelPart& part, Body&& body) const {
    const auto loop = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(unit_of(part, i));
    };
    on_threads_of(part, loop);
  }

  // The same from the back: what was looked at last lies in the caches.
  template <typename Body>
  void each_from_back(const ChannelPart& part, Body&& body) const {
    const auto loop = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = end; i-- > begin;) body(unit_of(part, i));
    };
    on_threads_of(part, loop);
  }

  // The channels of a part, [first, last).
  std::int64_t first_channel(const ChannelPart& part) const { return channel_of(part.first); }
  std::int64_t last_channel(const ChannelPart& part) const {
    return part.last == blocks_ ? channels_ : channel_of(part.last);
  }

  // What the lanes of a unit take from an array with a place for each channel; in `same` where it is the same for all.
  const float* factors(std::int64_t unit, const float* of_channels, LaneFactors& same) const {
    const float* const first = of_channels + channel_of(unit);
    if (!one_channel()) return first;
    same.fill(*first);
    return same.data();
  }

 private:
  // Of the first cache, in which the second look of moments_of finds them.
  static constexpr std::int64_t kStripBytes = 32 << 10;
  static constexpr std::int64_t kShortestStrip = 32;  // pixels, so that sums do not cost more than the pixels

  // Of one of two images, in a second cache of 1 MiB or more.
  static constexpr std::int64_t kPartBytes = 512 << 10;
  static constexpr int kPartsPerThread = 2;  // so that threads end at about the same time

  std::int64_t blocks_of_part() const {
    return std::max<std::int64_t>(1, kPartBytes / (values_per_channel() * inner_ * element_bytes_));
  }

  std::int64_t unit_of(const ChannelPart& part, std::int64_t i) const {
    const std::int64_t size = part.last - part.first;
    return i / size * blocks_ + part.first + i % size;
  }

  template <typename Loop>
  void on_threads_of(const ChannelPart& part, Loop&& loop) const {
    const std::int64_t units = strips() * (part.last - part.first);
    if (!part.whole) return loop(0, units);
    parallel_for(units, kElementsPerThread / ((strips_ == 1 ? pixels_ : strip_) * inner_), loop);
  }

  std::int64_t images_, channels_, pixels_;
  std::int64_t element_bytes_ = 4;
  std::int64_t inner_ = 1;               // channels side by side
  std::int64_t blocks_ = 0;              // of `inner` channels in an image
  std::int64_t strip_ = 0, strips_ = 1;  // pixels of one, their number in an image
};

// Arrays in scratch memory. f64: of each strip and channel, and of each channel; f32: of each channel.
class ChannelArrays {
 public:
  explicit ChannelArrays(const ChannelUnits& units)
      : strips_(units.strips()), padded_(units.padded_channels()) {}

  std::size_t bytes() const {
    return static_cast<std::size_t>(padded_) *
           (kSums * static_cast<std::size_t>(strips_ + 1) * sizeof(double) + kFactors * sizeof(float));
  }
  // Two sums: `which` is 0 or 1. Row `strip` of it; the row after the last strip is the total.
  double* sums(void* scratch, int which, std::int64_t strip) const {
    return static_cast<double*>(scratch) + (which * (strips_ + 1) + strip) * padded_;
  }
  double* totals(void* scratch, int which) const { return sums(scratch, which, strips_); }
  float* factors(void* scratch, int which) const {
    return reinterpret_cast<float*>(sums(scratch, kSums, 0)) + which * padded_;
  }
  std::span<float> all_factors(void* scratch) const {
    return {factors(scratch, 0), static_cast<std::size_t>(kFactors * padded_)};
  }

 private:
  static constexpr int kSums = 2, kFactors = 5;
  std::int64_t strips_, padded_;
};

}  // namespace fleetrun::runtime::cpu
