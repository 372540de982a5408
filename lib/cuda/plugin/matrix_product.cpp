#include "cuda/plugin/matrix_product.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr std::size_t kMostWorkspace = 32U << 20U;  // bytes: what NVIDIA advises for Hopper

// What the planner promises of values; cuBLASLt would believe in 256 bytes.
constexpr std::uint32_t kAlignment = 64;

using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy<cublasLtMatmulPreferenceDestroy>>;

template <typename T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t what, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description, what, &value, sizeof value),
        "describing a matrix product");
}

template <typename T>
void prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what,
            const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value),
        "choosing a matrix product");
}

cudaDataType_t type_of(Number type) {
  switch (type) {
    case Number::f16:
      return CUDA_R_16F;
    case Number::bf16:
      return CUDA_R_16BF;
    case Number::f32:
      break;
  }
  return CUDA_R_32F;
}

cublasOperation_t operation(const Factor& factor) { return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

// cuBLASLt counts matrices by columns: our [rows, columns] is its [columns, rows], and a product its product of the
// factors in the other order.
MatrixProduct::MatrixProduct(CudaDevice& device, Number type, const Factor& left, const Factor& right,
                             bool with_bias)
    : device_(device),
      with_bias_(with_bias),
      left_(make_layout(type, left.columns, left.rows)),
      right_(make_layout(type, right.columns, right.rows)),
      made_(make_layout(type, right.transposed ? right.rows : right.columns,
                        left.transposed ? left.columns : left.rows)) {
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(
            &description,
            type == Number::f32 && device.options().tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
            CUDA_R_32F),
        "describing a matrix product");
  description_.reset(description);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, operation(right));
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, operation(left));
  if (with_bias) set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  choose();
}

MatrixProduct::Layout MatrixProduct::make_layout(Number type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type_of(type), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "describing a matrix");
  return Layout(layout);
}

void MatrixProduct::choose() {
  const std::size_t most = std::min(kMostWorkspace, device_.options().workspace_limit);
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "choosing a matrix product");
  const Preference preference(made);
  prefer(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(made, matrix, kAlignment);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(device_.cublas(), description_.get(), right_.get(), left_.get(),
                                     made_.get(), made_.get(), made, 1, &found, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "choosing a matrix product");
  if (count == 0)
    throw Error(ErrorKind::config, fmt::format("cuBLASLt has no product within {} bytes of workspace", most));
  check(found.state, "choosing a matrix product");
  algorithm_ = found.algo;
  workspace_ = found.workspaceSize;
}

void MatrixProduct::run(const Arrays& arrays, void* workspace, cudaStream_t stream) {
  if (with_bias_) set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, arrays.bias);
  check(cublasLtMatmul(device_.cublas(), description_.get(), &kOne, arrays.right, right_.get(), arrays.left,
                       left_.get(), &kZero, arrays.made, made_.get(), arrays.made, made_.get(), &algorithm_,
                       workspace, workspace_, stream),
        "multiplying matrices");
}

}  // namespace fleetrun::cuda
