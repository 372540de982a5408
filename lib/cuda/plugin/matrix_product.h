// Products of two row-major matrices of one type by cuBLASLt, summed in f32, prepared once: its heuristics choose among the
// algorithms that keep to the workspace.
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <memory>

#include "cuda/plugin/cuda_device.h"
#include "cuda/plugin/number.h"

namespace fleetrun::cuda {

// As it lies; `transposed`: used with rows and columns exchanged.
struct Factor {
  std::int64_t rows, columns;
  bool transposed = false;
};

class MatrixProduct {
 public:
  // made = left right, `bias` (one for each column) added where it is wanted. Throws Error(config) when cuBLASLt has
  // no algorithm for it.
  MatrixProduct(CudaDevice& device, Number type, const Factor& left, const Factor& right, bool with_bias);

  std::size_t workspace_bytes() const { return workspace_; }

  struct Arrays {
    const void *left, *right;
    const void* bias;  // null without
    void* made;
  };
  void run(const Arrays& arrays, void* workspace, cudaStream_t stream);

 private:
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayoutDestroy>>;
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDescDestroy>>;

  static Layout make_layout(Number type, std::int64_t rows, std::int64_t columns);
  void choose();

  CudaDevice& device_;
  bool with_bias_;
  Description description_;
  Layout left_, right_, made_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_ = 0;
};

}  // namespace fleetrun::cuda
