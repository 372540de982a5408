#include "cuda/plugin/check.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::cuda {

void check(cudaError_t code, std::string_view doing) {
  if (code == cudaSuccess) return;
  const ErrorKind kind = code == cudaErrorMemoryAllocation ? ErrorKind::os : ErrorKind::internal;
  throw Error(kind,
              fmt::format("{}: CUDA says {} ({})", doing, cudaGetErrorString(code), static_cast<int>(code)));
}

void check(cudnnStatus_t code, std::string_view doing) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  throw Error(ErrorKind::internal, fmt::format("{}: cuDNN says {} ({})", doing, cudnnGetErrorString(code),
                                               static_cast<int>(code)));
}

void check(cublasStatus_t code, std::string_view doing) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::internal, fmt::format("{}: cuBLAS says {} ({})", doing, cublasGetStatusString(code),
                                               static_cast<int>(code)));
}

CudnnTensor make_tensor(int n, int c, int h, int w) {
  cudnnTensorDescriptor_t descriptor = nullptr;
  check(cudnnCreateTensorDescriptor(&descriptor), "making a tensor descriptor");
  CudnnTensor tensor(descriptor);
  check(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w),
        fmt::format("describing a tensor [{},{},{},{}]", n, c, h, w));
  return tensor;
}

}  // namespace fleetrun::cuda
