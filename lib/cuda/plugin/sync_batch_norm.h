// The kernels of batch normalisation over all ranks, as launch.h has those of other ops. Images are f32, f16 or bf16, what is
// of each channel is f32; sums are made in f64. Fewer than 2^31 elements.
#pragma once
#include <cstddef>

#include "cuda/plugin/batch_norm.h"

namespace fleetrun::cuda {

std::size_t bytes_of_norm_sums(const NormImages& images);     // scratch memory of the two below
std::size_t bytes_of_norm_factors(const NormImages& images);  // and of the other two

void sync_norm_sums(const NormImages& images, const void* x, const float* mean, float* sums, void* scratch,
                    cudaStream_t stream);

struct NormGradSums {
  const void *x, *dy;
  const float *mean, *variance;  // of the batch
  float *sums, *dscale, *dbias;
};
void sync_norm_grad_sums(const NormImages& images, const NormGradSums& arrays, double epsilon, void* scratch,
                         cudaStream_t stream);

struct SyncNorm {
  const void* x;
  void* y;
  const float *scale, *bias, *sums;
  float *mean, *variance, *batch_mean, *batch_variance;
};
struct NormSettings {
  double epsilon;
  float keep, take;  // of the running statistics, of those of the batch
};
void sync_norm(const NormImages& images, const SyncNorm& arrays, const NormSettings& settings, void* scratch,
               cudaStream_t stream);

struct SyncNormGrad {
  const void *x, *dy;
  void* dx;
  const float *scale, *mean, *variance, *sums;
};
void sync_norm_grad(const NormImages& images, const SyncNormGrad& arrays, double epsilon, void* scratch,
                    cudaStream_t stream);

}  // namespace fleetrun::cuda
