// Sums over the images and pixels of each channel, in an order that depends on the sizes only. The elements of a channel
// are cut into pieces: a block sums one piece of one channel, or where channels lie side by side of several channels, and
// puts the sum into scratch memory; the blocks of a second kernel add up the pieces.
//
// A Source has
//   Sum                                   the type of a sum, with + and a value that Sum{} makes
//   int count() const                     sums of each channel
//   void add(k, offset, channel, sum)     adds to the k-th sum of a channel what its element at `offset` gives
// and a Sink is called with (k, channel, sum).
#pragma once
#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/over_block.cuh"

namespace fleetrun::cuda {

// Channels side by side that a block takes. Blocks have fewer threads only in the tests that run kernels on the host.
constexpr int kLanes = kThreads < 256 ? 8 : 32;
constexpr int kRowsAtOnce = kThreads / kLanes;  // of these
constexpr std::int64_t kBlocksOfSums = 1024;    // enough for every device

struct Pieces {
  std::int64_t count, length;  // length: elements, or rows where channels lie side by side
};

inline std::int64_t tiles_of(std::int64_t channels) { return (channels + kLanes - 1) / kLanes; }

inline Pieces pieces_of(const Channels& sizes) {
  const bool side_by_side = sizes.inner == 1;
  const std::int64_t length = sizes.outer * sizes.inner;
  const std::int64_t groups = side_by_side ? tiles_of(sizes.channels) : sizes.channels;
  const std::int64_t wanted = std::max<std::int64_t>(1, kBlocksOfSums / groups);
  const std::int64_t least = side_by_side ? 8 * kRowsAtOnce : 4 * kThreads;
  const std::int64_t of_piece = std::max((length + wanted - 1) / wanted, least);
  return {(length + of_piece - 1) / of_piece, of_piece};
}

// Where the sum of a piece waits for the others.
template <typename OneSum>
struct PieceSums {
  OneSum* sums;
  std::int64_t channels;  // times sums of a channel

  __device__ void keep(std::int64_t piece, std::int64_t channel, const OneSum& sum) const {
    sums[piece * channels + channel] = sum;
  }
};

// A block for each piece of a channel whose pixels lie side by side. b bytes read per element of each array of the Source,
// once for each of its sums, and sizeof(Sum) bytes written per piece and sum.
// Predicted share of the memory bandwidth: 0.5 in f32 and 0.3 in f16 and bf16, because a thread reads one element at a
// time.
template <typename Source>
__global__ void sum_pixels(Source source, Channels sizes, Pieces pieces,
                           PieceSums<typename Source::Sum> kept) {
  __shared__ typename Source::Sum shared[kThreads];
  const auto inner = static_cast<int>(sizes.inner);
  const int images_on = kThreads / inner, pixels_on = kThreads % inner;
  FLEETRUN_EACH_ROW(row, sizes.channels * pieces.count) {
    const std::int64_t channel = row % sizes.channels, piece = row / sizes.channels;
    const std::int64_t first = piece * pieces.length + threadIdx.x;
    const std::int64_t end = min((piece + 1) * pieces.length, sizes.outer * sizes.inner);
    for (int k = 0; k < source.count(); ++k) {
      typename Source::Sum sum{};
      std::int64_t image = first / inner;
      auto pixel = static_cast<int>(first % inner);
      for (std::int64_t i = first; i < end; i += kThreads) {
        source.add(k, (image * sizes.channels + channel) * inner + pixel, channel, sum);
        image += images_on, pixel += pixels_on;
        if (pixel >= inner) pixel -= inner, ++image;
      }
      sum = over_block(sum, shared, Sum());
      if (threadIdx.x == 0) kept.keep(piece, k * sizes.channels + channel, sum);
    }
  }
}

// A block for each piece of kLanes channels that lie side by side. b bytes read per element of each array of the Source,
// once for each of its sums, and sizeof(Sum) bytes written per piece, channel and sum.
// Predicted share of the memory bandwidth: 0.5 in f32 and 0.3 in f16 and bf16, because a thread reads one element at a
// time.
template <typename Source>
__global__ void sum_lanes(Source source, Channels sizes, Pieces pieces,
                          PieceSums<typename Source::Sum> kept) {
  __shared__ typename Source::Sum shared[kThreads];
  const std::int64_t tiles = (sizes.channels + kLanes - 1) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, first = static_cast<int>(threadIdx.x) / kLanes;
  FLEETRUN_EACH_ROW(block, tiles * pieces.count) {
    const std::int64_t channel = block % tiles * kLanes + lane, piece = block / tiles;
    const std::int64_t end = min((piece + 1) * pieces.length, sizes.outer);
    for (int k = 0; k < source.count(); ++k) {
      typename Source::Sum sum{};
      if (channel < sizes.channels)
        for (std::int64_t row = piece * pieces.length + first; row < end; row += kRowsAtOnce)
          source.add(k, row * sizes.channels + channel, channel, sum);
      sum = over_block<kLanes>(sum, shared, Sum());
      if (first == 0 && channel < sizes.channels) kept.keep(piece, k * sizes.channels + channel, sum);
    }
  }
}

// A block for kLanes channels: adds up their pieces in order and gives each sum to the sink. sizeof(OneSum) bytes
// read per piece, channel and sum. Predicted share of the memory bandwidth: below 0.1, because its launch takes longer
// than moving the bytes.
template <typename OneSum, typename Sink>
__global__ void finish_sums(const OneSum* sums, Sink sink, std::int64_t pieces, std::int64_t channels,
                            std::int64_t all) {
  __shared__ OneSum shared[kThreads];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, first = static_cast<int>(threadIdx.x) / kLanes;
  FLEETRUN_EACH_ROW(block, (all + kLanes - 1) / kLanes) {
    const std::int64_t channel = block * kLanes + lane;
    OneSum sum{};
    if (channel < all)
      for (std::int64_t piece = first; piece < pieces; piece += kRowsAtOnce)
        sum = sum + sums[piece * all + channel];
    sum = over_block<kLanes>(sum, shared, Sum());
    if (first == 0 && channel < all) sink(static_cast<int>(channel / channels), channel % channels, sum);
  }
}

template <typename OneSum>
std::size_t bytes_of_channel_sums(const Channels& sizes, int sums) {
  return static_cast<std::size_t>(pieces_of(sizes).count * sums * sizes.channels) * sizeof(OneSum);
}

// `scratch`: bytes_of_channel_sums().
template <typename Source, typename Sink>
void sum_channels(const Source& source, const Sink& sink, const Channels& sizes, void* scratch,
                  cudaStream_t stream) {
  using OneSum = typename Source::Sum;
  const Pieces pieces = pieces_of(sizes);
  const std::int64_t all = source.count() * sizes.channels;
  const PieceSums<OneSum> kept = {static_cast<OneSum*>(scratch), all};
  if (sizes.inner == 1)
    start_blocks(sum_lanes<Source>, tiles_of(sizes.channels) * pieces.count, stream, source, sizes, pieces,
                 kept);
  else
    start_blocks(sum_pixels<Source>, sizes.channels * pieces.count, stream, source, sizes, pieces, kept);
  start_blocks(finish_sums<OneSum, Sink>, tiles_of(all), stream, kept.sums, sink, pieces.count,
               sizes.channels, all);
}

}  // namespace fleetrun::cuda
