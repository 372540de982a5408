// Our own kernels of batch normalisation, alone and fused with what follows it, and those that cuDNN's needs beside it. What they compute is said in
// lib/runtime/ops/batch_norm.cpp, batch_norm_act.cpp and batch_norm_add_act.cpp.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/logic/channels_last.h"
#include "cuda/plugin/number.h"

namespace fleetrun::cuda {

// The images that are normalised.
struct NormImages {
  Channels sizes;
  Number type;

  std::int64_t count() const { return sizes.outer * sizes.channels * sizes.inner; }
};

// Scratch memory for sums of parts of the images, in bytes.
std::size_t batch_norm_scratch_bytes(const NormImages& images);

// Of each channel, in f32.
struct NormChannels {
  const float *scale, *bias, *mean, *variance;
  float epsilon;
};

struct NormStatistics {
  float *batch_mean, *batch_variance;  // made
  float *mean, *variance;              // the running ones, moved: by `keep` and `take`
  float keep, take;
};

// Reads the images once. `scratch` has batch_norm_scratch_bytes.
void norm_statistics(const NormImages& images, const void* x, const NormStatistics& statistics, void* scratch,
                     cudaStream_t stream);

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, then + z where there is one, then max(., 0) if `rectified`.
// y may be x or z.
void normalise(const NormImages& images, const void* x, const void* z, void* y, bool rectified,
               const NormChannels& channels, cudaStream_t stream);

// What the gradient of y is made of.
struct NormGradient {
  const void *x, *dy;
  const void* dy_too;  // added to dy; may be null. Only with y
  const void* y;       // null: the rectifier, if any, is found out from x
  bool rectified;
  void* dz;  // the gradient before the addition; made where y is given, may be dy
  void* dx;  // may be dy, or x where there is a dz
  float *dscale, *dbias;
};
void norm_gradient(const NormImages& images, const NormGradient& gradient, const NormChannels& channels,
                   void* scratch, cudaStream_t stream);

// What cuDNN's batch normalisation leaves to us. From the mean and 1 / sqrt(variance + epsilon) of a batch: its variance,
// and the running statistics moved.
struct Statistics {
  const float *batch_mean, *inverse;
  float *batch_variance, *mean, *variance;
};
void move_statistics(const Statistics& statistics, double epsilon, float keep, float take, int channels,
                     cudaStream_t stream);
void inverse_deviation(const float* variance, float* inverse, double epsilon, int channels,
                       cudaStream_t stream);

}  // namespace fleetrun::cuda
