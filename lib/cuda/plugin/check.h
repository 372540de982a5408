// Return codes of the CUDA libraries as errors: what was being done, and what the library says.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <array>
#include <memory>
#include <string_view>

namespace fleetrun::cuda {

// Throw Error(os) when device memory ran out, else Error(internal).
void check(cudaError_t code, std::string_view doing);
void check(cudnnStatus_t code, std::string_view doing);
void check(cublasStatus_t code, std::string_view doing);

// unique_ptr's deleter for a library's handle. What goes wrong at the end of everything is of no use to anybody.
template <auto destroy>
struct Destroy {
  template <typename Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};

using CudnnTensor = std::unique_ptr<cudnnTensorStruct, Destroy<cudnnDestroyTensorDescriptor>>;

// [n, c, h, w] f32, row-major.
CudnnTensor make_tensor(const std::array<int, 4>& sizes);

}  // namespace fleetrun::cuda
