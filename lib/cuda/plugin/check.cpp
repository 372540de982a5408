#include "cuda/plugin/check.h"

#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::cuda {

void check(cudaError_t code, std::string_view doing) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears it: a caller that catches this Error must not get the same error from its next call
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
  throw Error(ErrorKind::internal, fmt::format("{}: cuBLASLt says {} ({})", doing,
                                               cublasLtGetStatusString(code), static_cast<int>(code)));
}

CudnnTensor make_tensor(const std::array<int, 4>& sizes) {
  cudnnTensorDescriptor_t descriptor = nullptr;
  check(cudnnCreateTensorDescriptor(&descriptor), "making a tensor descriptor");
  CudnnTensor tensor(descriptor);
  check(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, sizes[0], sizes[1],
                                   sizes[2], sizes[3]),
        fmt::format("describing a tensor {}", sizes));
  return tensor;
}

}  // namespace fleetrun::cuda
