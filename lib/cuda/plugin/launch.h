// The CUDA kernels of our own as plain functions: each gives its work to `stream` and returns. What they compute is
// said where their op is defined, lib/runtime/ops; arrays are of the device, images in the layouts of image_layout.h.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/logic/channels_last.h"

namespace fleetrun::cuda {

// elementwise.cu
void fill(float* y, float value, std::int64_t count, cudaStream_t stream);
void fill_from(float* y, const float* value, float divisor, std::int64_t count, cudaStream_t stream);
void scale(const float* x, float* y, float factor, float bias, std::int64_t count, cudaStream_t stream);
void scale_from(const float* x, const float* factor, float divisor, float* y, std::int64_t count,
                cudaStream_t stream);
void add(const float* x, const float* y, float* sum, std::int64_t count, cudaStream_t stream);
void relu(const float* x, float* y, std::int64_t count, cudaStream_t stream);
void relu_grad(const float* y, const float* dy, float* dx, std::int64_t count, cudaStream_t stream);
void clamp(const float* x, float* y, float highest, std::int64_t count,
           cudaStream_t stream);  // to 0..highest
void clamp_grad(const float* y, const float* dy, float* dx, float highest, std::int64_t count,
                cudaStream_t stream);  // dy where 0 < y < highest

enum class Number { f32, f16, bf16 };
void cast(const void* x, Number from, void* y, Number to, std::int64_t count, cudaStream_t stream);

struct Drop {
  std::uint64_t seed, high;  // key and upper counter of the random numbers
  std::uint32_t below;       // a word below this is dropped
  float scale;               // of what is kept
};
void dropout(const float* x, float* y, const Drop& drop, std::int64_t count, cudaStream_t stream);

// joined is `rows` times a run of x and a run of y.
struct Runs {
  std::int64_t rows, x, y;
};
void join(const float* x, const float* y, float* joined, const Runs& runs, cudaStream_t stream);
void part(const float* joined, float* x, float* y, const Runs& runs, cudaStream_t stream);

void sgd(float* param, const float* grad, const float* rate, float decay, std::int64_t count,
         cudaStream_t stream);

struct Momentum {
  float mu, decay;
  bool nesterov;
};
void momentum(float* param, float* velocity, const float* grad, const float* rate, const Momentum& settings,
              std::int64_t count, cudaStream_t stream);

struct Adam {
  float beta1, beta2, epsilon, decay;
};
struct AdamArrays {
  float *param, *moment1, *moment2, *pow1, *pow2;
  const float *grad, *rate;
};
void adam(const AdamArrays& arrays, const Adam& settings, std::int64_t count, cudaStream_t stream);

// rows.cu
// The first label that is not a class, for the host to see: memory that both can reach.
struct BadLabel {
  int seen;  // not 0 once there is one
  int sample, label;
};
void cross_entropy(const float* logits, const int* label, float* softmax, float* loss, int rows, int classes,
                   BadLabel* bad, cudaStream_t stream);
void cross_entropy_grad(const float* softmax, const int* label, const float* dloss, float* dlogits, int rows,
                        int classes, BadLabel* bad, cudaStream_t stream);
void accuracy(const float* scores, const int* label, float* hits, int rows, int classes, BadLabel* bad,
              cudaStream_t stream);
void weighted_mean(const float* x, const float* weight, float* y, std::int64_t count, cudaStream_t stream);
void mean(const float* x, float* y, std::int64_t count, cudaStream_t stream);
void add_to_channels(float* y, const float* bias, const Channels& channels, cudaStream_t stream);
void sum_of_channels(const float* y, float* sums, const Channels& channels, cudaStream_t stream);

// images.cu
struct Pooling {
  std::int64_t planes;  // whose elements lie beside each other `lanes` at a time:
  int lanes;            // images * channels and 1, or images and channels when those are last
  int in[2], out[2];    // rows, columns
  int kernel[2], strides[2], before[2];
  bool exclusive;
};
void max_pool(const float* x, float* y, const Pooling& pooling, cudaStream_t stream);
void max_pool_grad(const float* x, const float* y, const float* dy, float* dx, const Pooling& pooling,
                   cudaStream_t stream);
void average_pool(const float* x, float* y, const Pooling& pooling, cudaStream_t stream);
void average_pool_grad(const float* dy, float* dx, const Pooling& pooling, cudaStream_t stream);

// An image inside a larger one whose rest is 0.
struct Frame {
  std::int64_t planes;
  int lanes;          // as in Pooling
  int in[2], out[2];  // rows, columns: of the image, and with its frame
  int before[2];      // above, on the left
};
void put_into_frame(const float* x, float* framed, const Frame& frame, cudaStream_t stream);
void take_from_frame(const float* framed, float* x, const Frame& frame, cudaStream_t stream);

// Of each image a table [rows][columns] as [columns][rows].
struct Turn {
  std::int64_t images, rows, columns;
};
void turn(const float* x, float* y, const Turn& sizes, cudaStream_t stream);

// From the mean and 1 / sqrt(variance + epsilon) of a batch: its variance, and the running statistics moved.
struct Statistics {
  const float *batch_mean, *inverse;
  float *batch_variance, *mean, *variance;
};
void move_statistics(const Statistics& statistics, double epsilon, float keep, float take, int channels,
                     cudaStream_t stream);
void inverse_deviation(const float* variance, float* inverse, double epsilon, int channels,
                       cudaStream_t stream);

}  // namespace fleetrun::cuda
