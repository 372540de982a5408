// Batch normalisation in two passes over the images: sums for the statistics, then the result. Sums are taken in one order
// whatever the device, so that a run can be repeated bit by bit. They are not those of channel_sums.cuh, where a thread
// reads one element of one channel at a time: here it reads whole packs, of several channels where these are last.
// The predicted shares of the memory bandwidth are for packs of 16 bytes. Without packs we predict 0.6 instead of 0.83 in
// f16 and bf16.
#include "cuda/plugin/batch_norm.h"

#include <algorithm>

#include "cuda/plugin/elements.cuh"
#include "cuda/plugin/number.cuh"
#include "cuda/plugin/over_block.cuh"

namespace fleetrun::cuda {
namespace {

constexpr int kAtOnce = 4;           // packs that a thread reads before it uses the first
constexpr int kSummingBlocks = 512;  // that share the images for sums: each leaves its own behind
constexpr int kMappingBlocks = 1024;
constexpr int kMostWidth = 32;  // packs beside each other in a block: 512 bytes of each row
constexpr int kFinished = 8;    // channels of a block that adds up what the others left

// How images are shared out. A column is one pack of channels in all pixels when channels are last, else one channel; its
// packs are its rows. A block has `width` columns beside each other, of one chunk of the rows.
struct Share {
  int rows, columns, width, tiles, chunks;
  int plane;  // packs of a plane when channels are first
  __host__ __device__ std::int64_t blocks() const { return std::int64_t{tiles} * chunks; }
};

Share share_out(const Channels& images, int pack, bool last, int blocks) {
  Share share = {};
  share.columns = static_cast<int>(last ? images.channels / pack : images.channels);
  share.plane = static_cast<int>(images.inner / pack);
  share.rows = static_cast<int>(last ? images.outer : images.outer * share.plane);
  share.width = last ? std::min(share.columns, std::min(kMostWidth, kThreads)) : 1;
  share.tiles = (share.columns + share.width - 1) / share.width;
  const int lanes = kThreads / share.width;
  share.chunks = std::clamp(blocks / share.tiles, 1, std::max(1, share.rows / lanes));
  return share;
}

// The packs that a thread of a block walks along: every `step`th row of its column.
template <int N, bool kLast>
struct Walk {
  static constexpr int kOwn = kLast ? N : 1;  // channels of the thread
  int row, end, step, column, lane, chunk, plane, columns;

  __device__ Walk(const Share& share, std::int64_t block)
      : step(kThreads / share.width), plane(share.plane), columns(share.columns) {
    const int thread = static_cast<int>(threadIdx.x);
    chunk = static_cast<int>(block / share.tiles);
    lane = thread / share.width;
    column = static_cast<int>(block % share.tiles) * share.width + thread % share.width;
    end = static_cast<int>(std::int64_t{share.rows} * (chunk + 1) / share.chunks);
    row = works() ? static_cast<int>(std::int64_t{share.rows} * chunk / share.chunks) + lane : end;
  }
  __device__ bool works() const { return lane < step && column < columns; }
  __device__ int channel() const { return kLast ? column * N : column; }
  __device__ static int of(int element) { return kLast ? element : 0; }  // the thread's channel of it
  __device__ std::int64_t offset(int at) const {
    if constexpr (kLast) return (std::int64_t{at} * columns + column) * N;
    return ((std::int64_t{at / plane} * columns + column) * plane + at % plane) * N;
  }
};

// Calls use(place) for each pack of the walk, after load(slot, place) for kAtOnce of them.
template <typename W, typename Load, typename Use>
__device__ void walk_along(const W& walk, const Load& load, const Use& use) {
  for (int row = walk.row; row < walk.end; row += kAtOnce * walk.step) {
#pragma unroll
    for (int slot = 0; slot < kAtOnce; ++slot)
      if (row + slot * walk.step < walk.end) load(slot, walk.offset(row + slot * walk.step));
#pragma unroll
    for (int slot = 0; slot < kAtOnce; ++slot)
      if (row + slot * walk.step < walk.end) use(slot, walk.offset(row + slot * walk.step));
  }
}

// Two sums of each channel of the thread: over the block, then left in partial[chunk][2][channels].
template <int kOwn>
struct Sums {
  float first[kOwn], second[kOwn];
};

template <typename W>
__device__ void leave(const Sums<W::kOwn>& sums, const W& walk, int width, int channels, float* partial) {
  constexpr int kOwn = W::kOwn;
  __shared__ float first[kOwn * kThreads];
  __shared__ float second[kOwn * kThreads];
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    first[i * kThreads + thread] = sums.first[i];
    second[i * kThreads + thread] = sums.second[i];
  }
  __syncthreads();
  for (int lanes = walk.step; lanes > 1;) {
    const int half = (lanes + 1) / 2;
    if (walk.lane + half < lanes) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        first[i * kThreads + thread] += first[i * kThreads + thread + half * width];
        second[i * kThreads + thread] += second[i * kThreads + thread + half * width];
      }
    }
    __syncthreads();
    lanes = half;
  }
  if (walk.lane == 0 && walk.works()) {
    float* const to = partial + std::int64_t{walk.chunk} * 2 * channels + walk.channel();
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      to[i] = first[i * kThreads + thread];
      to[channels + i] = second[i * kThreads + thread];
    }
  }
  __syncthreads();
}

// Sums of x and x * x, both less the first value of the channel, which keeps them small. b bytes read per element.
// Predicted share of the memory bandwidth: 0.83.
template <typename T, int N, bool kLast>
__global__ void sum_values(const T* x, float* partial, int channels, Share share) {
  FLEETRUN_EACH_ROW(block, share.blocks()) {
    const Walk<N, kLast> walk(share, block);
    Sums<Walk<N, kLast>::kOwn> sums = {};
    if (walk.works()) {
      const auto pivot = Pack<T, N>::read(x + walk.offset(0));
      Pack<T, N> packs[kAtOnce] = {};
      walk_along(
          walk, [&](int slot, std::int64_t at) { packs[slot] = Pack<T, N>::read(x + at); },
          [&](int slot, std::int64_t) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
              const float value = packs[slot][i] - pivot[walk.of(i)];
              sums.first[walk.of(i)] += value;
              sums.second[walk.of(i)] += value * value;
            }
          });
    }
    leave(sums, walk, share.width, channels, partial);
  }
}

// The sums of one channel over all chunks.
__device__ TwoSums total_of(const float* partial, std::int64_t channel, int channels, int chunks) {
  __shared__ TwoSums shared[kThreads];
  TwoSums mine = {0, 0};
  if (channel < channels)
    for (int chunk = static_cast<int>(threadIdx.x) / kFinished; chunk < chunks;
         chunk += kThreads / kFinished) {
      const float* const from = partial + std::int64_t{chunk} * 2 * channels + channel;
      mine.first += static_cast<double>(from[0]);
      mine.second += static_cast<double>(from[channels]);
    }
  return over_block<kFinished>(mine, shared, Sum());
}

// 8 bytes read per channel and chunk, and b + 8 read and 16 written per channel.
// Predicted share of the memory bandwidth: below 0.1, because its launch takes longer than moving the bytes.
template <typename T>
__global__ void finish_statistics(const T* x, const float* partial, NormStatistics s, int channels,
                                  int chunks, std::int64_t pitch, double count, std::int64_t groups) {
  FLEETRUN_EACH_ROW(group, groups) {
    const std::int64_t channel = group * kFinished + threadIdx.x % kFinished;
    const TwoSums total = total_of(partial, channel, channels, chunks);
    if (threadIdx.x >= kFinished || channel >= channels) continue;
    const double moved = total.first / count;
    const double mean = moved + static_cast<double>(static_cast<float>(x[channel * pitch]));
    const auto variance = static_cast<float>(fmax(total.second / count - moved * moved, 0.0));
    s.batch_mean[channel] = static_cast<float>(mean);
    s.batch_variance[channel] = variance;
    s.mean[channel] = s.mean[channel] * s.keep + static_cast<float>(mean) * s.take;
    s.variance[channel] = s.variance[channel] * s.keep + variance * s.take;
  }
}

// y = x * factor + offset of the channels of a thread.
template <int kOwn>
struct Line {
  float inverse[kOwn], factor[kOwn], offset[kOwn];

  __device__ Line(const NormChannels& c, int channel, bool with_bias) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      inverse[i] = 1.0F / sqrtf(c.variance[channel + i] + c.epsilon);
      factor[i] = c.scale[channel + i] * inverse[i];
      offset[i] = with_bias ? c.bias[channel + i] - c.mean[channel + i] * factor[i] : 0.0F;
    }
  }
};

// b bytes read from x, b from z where there is one, and b written, per element.
// Predicted share of the memory bandwidth: 0.83.
template <typename T, int N, bool kLast, bool kAdd>
__global__ void normalise_values(const T* x, const T* z, T* y, bool rectified, NormChannels c, Share share) {
  FLEETRUN_EACH_ROW(block, share.blocks()) {
    const Walk<N, kLast> walk(share, block);
    if (!walk.works()) continue;
    const Line<Walk<N, kLast>::kOwn> line(c, walk.channel(), true);
    Pack<T, N> packs[kAtOnce] = {}, added[kAtOnce] = {};
    walk_along(
        walk,
        [&](int slot, std::int64_t at) {
          packs[slot] = Pack<T, N>::read(x + at);
          if constexpr (kAdd) added[slot] = Pack<T, N>::read(z + at);
        },
        [&](int slot, std::int64_t at) {
          Pack<T, N> made;
#pragma unroll
          for (int i = 0; i < N; ++i) {
            float value = packs[slot][i] * line.factor[walk.of(i)] + line.offset[walk.of(i)];
            if constexpr (kAdd) value += added[slot][i];
            made.set(i, rectified && value < 0.0F ? 0.0F : value);
          }
          made.write(y + at);
        });
  }
}

// How a gradient kernel finds the elements that the rectifier let pass.
enum class Mask { none, of_x, of_y };

// Sums of g and g * (x - mean). 2 b bytes read per element, of x and dy. With Mask::of_y b more, of y, again b more if
// there is a dy_too, and b written, of dz. Predicted share of the memory bandwidth: 0.83.
template <typename T, int N, bool kLast, Mask kMask>
__global__ void sum_gradients(const T* x, const T* dy, const T* dy_too, const T* y, T* dz, NormChannels c,
                              float* partial, int channels, Share share) {
  FLEETRUN_EACH_ROW(block, share.blocks()) {
    using W = Walk<N, kLast>;
    const W walk(share, block);
    Sums<W::kOwn> sums = {};
    if (walk.works()) {
      const Line<W::kOwn> line(c, walk.channel(), kMask == Mask::of_x);
      float mean[W::kOwn];
#pragma unroll
      for (int i = 0; i < W::kOwn; ++i) mean[i] = c.mean[walk.channel() + i];
      Pack<T, N> values[kAtOnce] = {}, gradients[kAtOnce] = {}, others[kAtOnce] = {}, rectified[kAtOnce] = {};
      walk_along(
          walk,
          [&](int slot, std::int64_t at) {
            values[slot] = Pack<T, N>::read(x + at);
            gradients[slot] = Pack<T, N>::read(dy + at);
            if constexpr (kMask == Mask::of_y) {
              rectified[slot] = Pack<T, N>::read(y + at);
              if (dy_too != nullptr) others[slot] = Pack<T, N>::read(dy_too + at);
            }
          },
          [&](int slot, std::int64_t at) {
            Pack<T, N> passed = gradients[slot];
#pragma unroll
            for (int i = 0; i < N; ++i) {
              const float value = values[slot][i];
              float gradient = gradients[slot][i];
              if constexpr (kMask == Mask::of_x) {
                if (!(value * line.factor[walk.of(i)] + line.offset[walk.of(i)] > 0.0F)) gradient = 0.0F;
              }
              if constexpr (kMask == Mask::of_y) {
                if (dy_too != nullptr) gradient += others[slot][i];
                passed.set(i, rectified[slot][i] > 0.0F ? gradient : 0.0F);
                gradient = passed[i];
              }
              sums.first[walk.of(i)] += gradient;
              sums.second[walk.of(i)] += gradient * (value - mean[walk.of(i)]);
            }
            if constexpr (kMask == Mask::of_y) passed.write(dz + at);
          });
    }
    leave(sums, walk, share.width, channels, partial);
  }
}

// 8 bytes read per channel and chunk, and 4 read and 8 written per channel.
// Predicted share of the memory bandwidth: below 0.1, because its launch takes longer than moving the bytes.
__global__ void finish_gradients(const float* partial, NormChannels c, float* dscale, float* dbias,
                                 int channels, int chunks, std::int64_t groups) {
  FLEETRUN_EACH_ROW(group, groups) {
    const std::int64_t channel = group * kFinished + threadIdx.x % kFinished;
    const TwoSums total = total_of(partial, channel, channels, chunks);
    if (threadIdx.x >= kFinished || channel >= channels) continue;
    const float inverse = 1.0F / sqrtf(c.variance[channel] + c.epsilon);
    dscale[channel] = static_cast<float>(total.second * static_cast<double>(inverse));
    dbias[channel] = static_cast<float>(total.first);
  }
}

// dx from g and x. 2 b bytes read and b written per element. Predicted share of the memory bandwidth: 0.83.
template <typename T, int N, bool kLast, bool kOfX>
__global__ void spread_gradients(const T* x, const T* g, T* dx, NormChannels c, const float* dscale,
                                 const float* dbias, float count, Share share) {
  FLEETRUN_EACH_ROW(block, share.blocks()) {
    using W = Walk<N, kLast>;
    const W walk(share, block);
    if (!walk.works()) continue;
    const Line<W::kOwn> line(c, walk.channel(), kOfX);
    float mean[W::kOwn], by_x[W::kOwn], shift[W::kOwn];
#pragma unroll
    for (int i = 0; i < W::kOwn; ++i) {
      const int channel = walk.channel() + i;
      mean[i] = c.mean[channel];
      by_x[i] = -line.factor[i] * line.inverse[i] * dscale[channel] / count;
      shift[i] = -line.factor[i] * dbias[channel] / count;
    }
    Pack<T, N> values[kAtOnce] = {}, gradients[kAtOnce] = {};
    walk_along(
        walk,
        [&](int slot, std::int64_t at) {
          values[slot] = Pack<T, N>::read(x + at);
          gradients[slot] = Pack<T, N>::read(g + at);
        },
        [&](int slot, std::int64_t at) {
          Pack<T, N> made;
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const int own = walk.of(i);
            const float value = values[slot][i];
            float gradient = gradients[slot][i];
            if constexpr (kOfX) {
              if (!(value * line.factor[own] + line.offset[own] > 0.0F)) gradient = 0.0F;
            }
            made.set(i, gradient * line.factor[own] + ((value - mean[own]) * by_x[own] + shift[own]));
          }
          made.write(dx + at);
        });
  }
}

// Calls body.operator()<T, N, kLast>() with how the kernels take such images.
template <typename Body>
void for_images(const NormImages& images, const Body& body) {
  for_type(images.type, [&]<typename T>() {
    const bool last = images.sizes.inner == 1;
    const bool whole = (last ? images.sizes.channels : images.sizes.inner) % kPack<T> == 0;
    if (last && whole) return body.template operator()<T, kPack<T>, true>();
    if (last) return body.template operator()<T, 1, true>();
    if (whole) return body.template operator()<T, kPack<T>, false>();
    return body.template operator()<T, 1, false>();
  });
}

std::int64_t groups_of(std::int64_t channels) { return (channels + kFinished - 1) / kFinished; }

double values_of_a_channel(const Channels& images) {
  return static_cast<double>(images.outer * images.inner);
}

}  // namespace

std::size_t batch_norm_scratch_bytes(const NormImages& images) {
  std::size_t bytes = 0;
  for_images(images, [&]<typename T, int N, bool kLast>() {
    const Share share = share_out(images.sizes, N, kLast, kSummingBlocks);
    bytes = static_cast<std::size_t>(share.chunks * 2 * images.sizes.channels) * sizeof(float);
  });
  return bytes;
}

void norm_statistics(const NormImages& images, const void* x, const NormStatistics& statistics, void* scratch,
                     cudaStream_t stream) {
  for_images(images, [&]<typename T, int N, bool kLast>() {
    const Share share = share_out(images.sizes, N, kLast, kSummingBlocks);
    const auto* const values = static_cast<const T*>(x);
    auto* const partial = static_cast<float*>(scratch);
    const auto channels = static_cast<int>(images.sizes.channels);
    start_blocks(sum_values<T, N, kLast>, share.blocks(), stream, values, partial, channels, share);
    const std::int64_t groups = groups_of(channels);
    start_blocks(finish_statistics<T>, groups, stream, values, partial, statistics, channels, share.chunks,
                 images.sizes.inner, values_of_a_channel(images.sizes), groups);
  });
}

void normalise(const NormImages& images, const void* x, const void* z, void* y, bool rectified,
               const NormChannels& channels, cudaStream_t stream) {
  for_images(images, [&]<typename T, int N, bool kLast>() {
    const Share share = share_out(images.sizes, N, kLast, kMappingBlocks);
    start_blocks(z != nullptr ? normalise_values<T, N, kLast, true> : normalise_values<T, N, kLast, false>,
                 share.blocks(), stream, static_cast<const T*>(x), static_cast<const T*>(z),
                 static_cast<T*>(y), rectified, channels, share);
  });
}

void norm_gradient(const NormImages& images, const NormGradient& gradient, const NormChannels& channels,
                   void* scratch, cudaStream_t stream) {
  for_images(images, [&]<typename T, int N, bool kLast>() {
    const Share summing = share_out(images.sizes, N, kLast, kSummingBlocks);
    const Share mapping = share_out(images.sizes, N, kLast, kMappingBlocks);
    const auto count = static_cast<int>(images.sizes.channels);
    const auto* const x = static_cast<const T*>(gradient.x);
    const auto* const dy = static_cast<const T*>(gradient.dy);
    auto* const dz = static_cast<T*>(gradient.dz);
    auto* const partial = static_cast<float*>(scratch);
    const bool of_y = gradient.y != nullptr, of_x = gradient.rectified && !of_y;
    start_blocks(of_y   ? sum_gradients<T, N, kLast, Mask::of_y>
                 : of_x ? sum_gradients<T, N, kLast, Mask::of_x>
                        : sum_gradients<T, N, kLast, Mask::none>,
                 summing.blocks(), stream, x, dy, static_cast<const T*>(gradient.dy_too),
                 static_cast<const T*>(gradient.y), dz, channels, partial, count, summing);
    const std::int64_t groups = groups_of(count);
    start_blocks(finish_gradients, groups, stream, static_cast<const float*>(partial), channels,
                 gradient.dscale, gradient.dbias, count, summing.chunks, groups);
    start_blocks(of_x ? spread_gradients<T, N, kLast, true> : spread_gradients<T, N, kLast, false>,
                 mapping.blocks(), stream, x, of_y ? static_cast<const T*>(dz) : dy,
                 static_cast<T*>(gradient.dx), channels, static_cast<const float*>(gradient.dscale),
                 static_cast<const float*>(gradient.dbias),
                 static_cast<float>(values_of_a_channel(images.sizes)), mapping);
  });
}

// 16 bytes read and 12 written per channel. Predicted share of the memory bandwidth: below 0.01, because its launch takes
// longer than moving the bytes.
void move_statistics(const Statistics& s, double epsilon, float keep, float take, int channels,
                     cudaStream_t stream) {
  run_each(channels, stream, [=] __device__(std::int64_t c) {
    const auto inverse = static_cast<double>(s.inverse[c]);
    const auto variance = static_cast<float>(fmax(1.0 / (inverse * inverse) - epsilon, 0.0));
    s.batch_variance[c] = variance;
    s.mean[c] = s.mean[c] * keep + s.batch_mean[c] * take;
    s.variance[c] = s.variance[c] * keep + variance * take;
  });
}

// 4 bytes read and 4 written per channel. Predicted share of the memory bandwidth: below 0.01, because its launch takes
// longer than moving the bytes.
void inverse_deviation(const float* variance, float* inverse, double epsilon, int channels,
                       cudaStream_t stream) {
  run_each(channels, stream, [=] __device__(std::int64_t c) {
    inverse[c] = static_cast<float>(1.0 / sqrt(static_cast<double>(variance[c]) + epsilon));
  });
}

}  // namespace fleetrun::cuda
