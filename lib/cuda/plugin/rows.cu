// Kernels that sum up: the loss, its gradient, accuracy, means, biases. Their sums are taken in one order, whatever the
// device, so that a run can be repeated bit by bit.
#include <cmath>

#include "cuda/plugin/divisor.cuh"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/number.cuh"
#include "cuda/plugin/over_block.cuh"

namespace fleetrun::cuda {
namespace {

constexpr int kTop = 5;
constexpr int kNoClass = -1;  // instead of a count: the label is not a class

struct Highest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Whether the label is a class. Notes one that is too high for the host.
__device__ bool is_class(int label, std::int64_t row, int classes, BadLabel* bad) {
  if (label >= classes && atomicExch_system(&bad->seen, 1) == 0) {
    bad->sample = static_cast<int>(row);
    bad->label = label;
    __threadfence_system();
  }
  return label >= 0 && label < classes;
}

// One block for each row. 4 bytes read and 4 written per logit; later passes find the row in the cache.
// Predicted share of the memory bandwidth: 0.3, because the block waits for two sums of each row.
__global__ void cross_entropy_row(const float* logits, const int* label, float* softmax, float* loss,
                                  int rows, int classes, BadLabel* bad) {
  __shared__ float floats[kThreads];
  __shared__ double doubles[kThreads];
  FLEETRUN_EACH_ROW(row, rows) {
    const float* const x = logits + row * classes;
    float* const out = softmax + row * classes;
    float highest = -INFINITY;
    for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) highest = fmaxf(highest, x[c]);
    highest = over_block(highest, floats, Highest());
    double sum = 0;
    for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) {
      const float e = expf(x[c] - highest);
      out[c] = e;
      sum += static_cast<double>(e);
    }
    sum = over_block(sum, doubles, Sum());
    const auto factor = static_cast<float>(1.0 / sum);
    for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads) out[c] *= factor;
    if (threadIdx.x != 0) continue;
    const int wanted = label[row];
    loss[row] =
        is_class(wanted, row, classes, bad)
            ? static_cast<float>(log(sum) + static_cast<double>(highest) - static_cast<double>(x[wanted]))
            : 0.0F;
  }
}

// 4 bytes read and 4 written per logit. Predicted share of the memory bandwidth: 0.6, because each element needs a
// division of 64-bit numbers.
__global__ void cross_entropy_grad_element(const float* softmax, const int* label, const float* dloss,
                                           float* dlogits, int classes, BadLabel* bad, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const std::int64_t row = i / classes;
    const int wanted = label[row];
    const float one = i % classes == wanted ? 1.0F : 0.0F;
    dlogits[i] = is_class(wanted, row, classes, bad) ? (softmax[i] - one) * dloss[row] : 0.0F;
  }
}

// One block for each row: counts the classes that are ahead of the label. 4 bytes read per score and 4 written per row.
// Predicted share of the memory bandwidth: 0.3, because a block reads the label, then its score, then the row.
__global__ void count_ahead(const float* scores, const int* label, int* ahead, int rows, int classes,
                            BadLabel* bad) {
  __shared__ int counts[kThreads];
  FLEETRUN_EACH_ROW(row, rows) {
    const int wanted = label[row];
    int mine = 0;  // against NaN everything is ahead
    const bool known = is_class(wanted, row, classes, bad);
    if (known) {
      const float* const x = scores + row * classes;
      const float score = x[wanted];
      for (int c = static_cast<int>(threadIdx.x); c < classes; c += kThreads)
        mine += c < wanted ? !(x[c] < score) : !(x[c] <= score);
    }
    mine = over_block(mine, counts, Sum());
    if (threadIdx.x == 0) ahead[row] = known ? mine : kNoClass;
  }
}

// One block. 4 bytes read per row. Predicted share of the memory bandwidth: below 0.01, because its launch takes longer
// than moving the bytes.
__global__ void count_hits(const int* ahead, float* hits, int rows) {
  __shared__ int counts[kThreads];
  int top1 = 0, top5 = 0, counted = 0;
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += kThreads) {
    if (ahead[row] == kNoClass) continue;
    top1 += ahead[row] < 1 ? 1 : 0;
    top5 += ahead[row] < kTop ? 1 : 0;
    ++counted;
  }
  top1 = over_block(top1, counts, Sum());
  top5 = over_block(top5, counts, Sum());
  counted = over_block(counted, counts, Sum());
  if (threadIdx.x != 0) return;
  hits[0] = static_cast<float>(top1);
  hits[1] = static_cast<float>(top5);
  hits[2] = static_cast<float>(counted);
}

// One block. 4 bytes read per element. Predicted share of the memory bandwidth: below 0.01, because one block uses only
// one SM.
__global__ void mean_of_all(const float* x, float* y, std::int64_t count) {
  __shared__ double doubles[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += static_cast<double>(x[i]);
  sum = over_block(sum, doubles, Sum());
  if (threadIdx.x == 0) *y = static_cast<float>(sum / static_cast<double>(count));
}

// One block. 8 bytes read per element. Predicted share of the memory bandwidth: below 0.01, because one block uses only
// one SM.
__global__ void weighted_mean_of_all(const float* x, const float* weight, float* y, std::int64_t count) {
  __shared__ double doubles[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads)
    sum += static_cast<double>(x[i]) * static_cast<double>(weight[i]);
  sum = over_block(sum, doubles, Sum());
  if (threadIdx.x == 0) *y = static_cast<float>(sum / static_cast<double>(count));
}

// b bytes read and b written per element; the bias is in the cache. Predicted share of the memory bandwidth: 0.7 in f32
// and 0.4 in f16 and bf16, because a thread moves one element at a time.
template <typename T>
__global__ void add_bias(T* y, const T* bias, Divisor inner, Divisor channels, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const auto channel = channels.divide(inner.divide(static_cast<std::uint32_t>(i)).quotient).rest;
    y[i] = static_cast<T>(static_cast<float>(y[i]) + static_cast<float>(bias[channel]));
  }
}

// One block for each channel. b bytes read per element. Predicted share of the memory bandwidth: 0.3, because each
// element needs a division of 64-bit numbers; 0.1 with channels last, where threads beside each other read elements that
// are far apart.
template <typename T>
__global__ void sum_channel(const T* y, T* sums, Channels sizes) {
  __shared__ double doubles[kThreads];
  FLEETRUN_EACH_ROW(channel, sizes.channels) {
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < sizes.outer * sizes.inner; i += kThreads) {
      const std::int64_t outer = i / sizes.inner, inner = i % sizes.inner;
      const T value = y[(outer * sizes.channels + channel) * sizes.inner + inner];
      sum += static_cast<double>(static_cast<float>(value));
    }
    sum = over_block(sum, doubles, Sum());
    if (threadIdx.x == 0) sums[channel] = static_cast<T>(static_cast<float>(sum));
  }
}

}  // namespace

void cross_entropy(const float* logits, const int* label, float* softmax, float* loss, int rows, int classes,
                   BadLabel* bad, cudaStream_t stream) {
  start_blocks(cross_entropy_row, rows, stream, logits, label, softmax, loss, rows, classes, bad);
}

void cross_entropy_grad(const float* softmax, const int* label, const float* dloss, float* dlogits, int rows,
                        int classes, BadLabel* bad, cudaStream_t stream) {
  start_elements(cross_entropy_grad_element, std::int64_t{rows} * classes, stream, softmax, label, dloss,
                 dlogits, classes, bad);
}

void accuracy(const float* scores, const int* label, float* hits, int* ahead, int rows, int classes,
              BadLabel* bad, cudaStream_t stream) {
  start_blocks(count_ahead, rows, stream, scores, label, ahead, rows, classes, bad);
  start_blocks(count_hits, 1, stream, ahead, hits, rows);
}

void mean(const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  start_blocks(mean_of_all, 1, stream, x, y, count);
}

void weighted_mean(const float* x, const float* weight, float* y, std::int64_t count, cudaStream_t stream) {
  start_blocks(weighted_mean_of_all, 1, stream, x, weight, y, count);
}

void add_to_channels(Number type, void* y, const void* bias, const Channels& sizes, cudaStream_t stream) {
  for_type(type, [&]<typename T>() {
    start_elements(add_bias<T>, sizes.outer * sizes.channels * sizes.inner, stream, static_cast<T*>(y),
                   static_cast<const T*>(bias), Divisor(static_cast<int>(sizes.inner)),
                   Divisor(static_cast<int>(sizes.channels)));
  });
}

void sum_of_channels(Number type, const void* y, void* sums, const Channels& sizes, cudaStream_t stream) {
  for_type(type, [&]<typename T>() {
    start_blocks(sum_channel<T>, sizes.channels, stream, static_cast<const T*>(y), static_cast<T*>(sums),
                 sizes);
  });
}

}  // namespace fleetrun::cuda
