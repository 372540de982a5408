// The kernels of depthwise convolutions of a rectified image, as launch.h has those of other ops. Fewer than 2^31 elements.
#pragma once
#include <cstddef>

#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {

struct DepthwiseAxis {
  int in, out, kernel, stride, dilation, before;  // before: padding in front of the first element
};

struct Depthwise {
  std::int64_t images;
  int channels;
  bool channels_last;  // of the images; weights are [channels][rows][columns]
  DepthwiseAxis rows, columns;

  int taps() const { return rows.kernel * columns.kernel; }
};

std::size_t bytes_of_taps(const Depthwise& sizes);      // scratch memory of the first two below
std::size_t bytes_of_products(const Depthwise& sizes);  // and of the third

// y = the convolution of max(x, 0), plus b unless that is null.
void relu_depthwise(const Depthwise& sizes, const float* x, const float* w, const float* b, float* y,
                    void* scratch, cudaStream_t stream);
// 0 where x is not above 0.
void relu_depthwise_grad_input(const Depthwise& sizes, const float* dy, const float* w, const float* x,
                               float* dx, void* scratch, cudaStream_t stream);
// db may be null.
void relu_depthwise_grad_weights(const Depthwise& sizes, const float* x, const float* dy, float* dw,
                                 float* db, void* scratch, cudaStream_t stream);

}  // namespace fleetrun::cuda
