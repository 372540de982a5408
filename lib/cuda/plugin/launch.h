// The CUDA kernels of our own as plain functions: each gives its work to `stream` and returns. What they compute is
// said where their op is defined, lib/runtime/ops; arrays are of the device, images in the layouts of image_layout.h.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/logic/channels_last.h"
#include "cuda/plugin/number.h"

namespace fleetrun::cuda {

// elementwise.cu
void fill(float* y, float value, std::int64_t count, cudaStream_t stream);
void fill_from(float* y, const float* value, float divisor, std::int64_t count, cudaStream_t stream);
void scale_from(const float* x, const float* factor, float divisor, float* y, std::int64_t count,
                cudaStream_t stream);
// `count` elements of a type.
void scale(Number type, const void* x, void* y, float factor, float bias, std::int64_t count,
           cudaStream_t stream);
void add(Number type, const void* x, const void* y, void* sum, std::int64_t count, cudaStream_t stream);
void clamp(Number type, const void* x, void* y, float highest, std::int64_t count,
           cudaStream_t stream);  // to 0..highest
void clamp_grad(Number type, const void* y, const void* dy, void* dx, float highest, std::int64_t count,
                cudaStream_t stream);  // dy where 0 < y < highest

struct Drop {
  std::uint64_t seed, high;  // key and upper counter of the random numbers
  std::uint32_t below;       // a word below this is dropped
  float scale;               // of what is kept
};
void dropout(Number type, const void* x, void* y, const Drop& drop, std::int64_t count, cudaStream_t stream);

// joined is `rows` times a run of x and a run of y.
struct Runs {
  std::int64_t rows, x, y;
};
// Elements of `bytes` bytes, 2 or 4.
void join(int bytes, const void* x, const void* y, void* joined, const Runs& runs, cudaStream_t stream);
void part(int bytes, const void* joined, void* x, void* y, const Runs& runs, cudaStream_t stream);

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
// `ahead`: scratch memory for `rows` numbers.
void accuracy(const float* scores, const int* label, float* hits, int* ahead, int rows, int classes,
              BadLabel* bad, cudaStream_t stream);
void weighted_mean(const float* x, const float* weight, float* y, std::int64_t count, cudaStream_t stream);
void mean(const float* x, float* y, std::int64_t count, cudaStream_t stream);
// y and bias, and y and sums, have one type. y has fewer than 2^31 elements.
void add_to_channels(Number type, void* y, const void* bias, const Channels& channels, cudaStream_t stream);
void sum_of_channels(Number type, const void* y, void* sums, const Channels& channels, cudaStream_t stream);

// images.cu
struct Pooling {
  std::int64_t planes;  // whose elements lie beside each other `lanes` at a time:
  int lanes;            // images * channels and 1, or images and channels when those are last
  int in[2], out[2];    // rows, columns
  int kernel[2], strides[2], before[2];
  bool exclusive;
};
void max_pool(Number type, const void* x, void* y, const Pooling& pooling, cudaStream_t stream);
// Scratch memory in bytes: which element of each window is its maximum.
std::size_t max_pool_grad_scratch(const Pooling& pooling);
void max_pool_grad(Number type, const void* x, const void* dy, void* dx, void* scratch,
                   const Pooling& pooling, cudaStream_t stream);
void average_pool(Number type, const void* x, void* y, const Pooling& pooling, cudaStream_t stream);
void average_pool_grad(Number type, const void* dy, void* dx, const Pooling& pooling, cudaStream_t stream);

// An image inside one with more rows and columns, or more channels at each pixel; the rest of that is 0.
struct Frame {
  std::int64_t planes;
  int lanes_in, lanes_out;  // as in Pooling: of the image, and with its frame
  int in[2], out[2];        // rows, columns: of the same
  int before[2];            // above, on the left
};
void put_into_frame(int bytes, const void* x, void* framed, const Frame& frame, cudaStream_t stream);
void take_from_frame(int bytes, const void* framed, void* x, const Frame& frame, cudaStream_t stream);

// Of each image a table [rows][columns] as [columns][rows].
struct Turn {
  std::int64_t images, rows, columns;
};
void turn(int bytes, const void* x, void* y, const Turn& sizes, cudaStream_t stream);

// crop_mirror_normalize.cu
constexpr int kMostPixelChannels = 4;
struct PixelImages {
  int count, channels, rows, columns;
  bool channels_last;  // of the numbers; those of the bytes come first
};
struct PixelScales {
  float mean[kMostPixelChannels], scale[kMostPixelChannels];
};
struct ImageView {
  int top, left, mirrored, present;
};
void crop_mirror_normalize(Number type, const std::uint8_t* x, const ImageView* views, void* y,
                           const PixelImages& images, const PixelScales& scales, cudaStream_t stream);

// average_squares.cu
struct PicturePart {
  int channels, rows, columns;  // of the picture; the channels of a pixel lie side by side
  int side;                     // a pixel of the part is the mean of side x side pixels of the picture
  int top, left;                // of the part, in such pixels
  int rows_out, columns_out;    // of the part
};
// As average_blocks() of lib/runtime/data/decode does it.
void average_squares(const std::uint8_t* picture, std::uint8_t* part, const PicturePart& sizes,
                     cudaStream_t stream);

}  // namespace fleetrun::cuda
