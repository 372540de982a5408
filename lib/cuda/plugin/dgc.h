// The kernels of deep gradient compression, as launch.h has those of other ops. Fewer than 2^31 elements.
#pragma once
#include <cstddef>

#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {

struct DgcArrays {
  const float *param, *grad;
  float *velocity, *residual;
  std::int32_t* message;
};
struct DgcSettings {
  float mu, decay;
  bool nesterov;
  double ranks, limit;
};
std::size_t bytes_of_dgc(std::int64_t elements);  // scratch memory of dgc_select
void dgc_select(const DgcArrays& arrays, const DgcSettings& settings, std::int64_t kept,
                std::int64_t elements, void* scratch, cudaStream_t stream);

// grad = the mean of what `ranks` messages of 2 * kept numbers say.
void dgc_scatter(float* grad, const std::int32_t* gathered, int ranks, std::int64_t kept,
                 std::int64_t elements, cudaStream_t stream);

void dgc_sgd(float* param, const float* grad, const float* rate, std::int64_t count, cudaStream_t stream);

}  // namespace fleetrun::cuda
