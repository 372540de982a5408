// What the plug-in uses of cuBLASLt: products of matrices of one type, which it counts by columns.
#include <cublasLt.h>

#include <cstring>
#include <vector>

#include "base/number/half.h"
#include "cuda/on_host/product.h"
#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;

struct cublasLtContext {};

namespace {

constexpr std::size_t kWorkspace = 512;  // that the algorithm wants

struct Matrix {
  std::int64_t rows, columns, step;
  cudaDataType type;

  std::size_t element_bytes() const { return type == CUDA_R_32F ? sizeof(float) : sizeof(std::uint16_t); }
};
struct Product {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Preference {
  std::size_t workspace = 0;
  std::uint32_t alignment = 256;
};

// The library's own descriptions are as large as it likes.
template <typename T, typename Handle>
T& in(Handle* handle) {
  static_assert(sizeof(T) <= sizeof(*handle));
  return *reinterpret_cast<T*>(handle);
}
template <typename T, typename Handle, typename... Values>
cublasStatus_t make(Handle** handle, Values... values) {
  *handle = new Handle;
  in<T>(*handle) = T{values...};
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
void take(T& field, const void* value, std::size_t bytes) {
  if (bytes != sizeof(T)) on_host::refuse("an attribute of another size");
  std::memcpy(&field, value, bytes);
}

struct Sizes {
  std::int64_t m, n, k;

  Sizes(const Product& how, const Matrix& a, const Matrix& b, const Matrix& made)
      : m(how.a == CUBLAS_OP_N ? a.rows : a.columns),
        n(how.b == CUBLAS_OP_N ? b.columns : b.rows),
        k(how.a == CUBLAS_OP_N ? a.columns : a.rows) {
    if ((how.b == CUBLAS_OP_N ? b.rows : b.columns) != k || made.rows != m || made.columns != n)
      on_host::refuse("a product of matrices that do not fit");
  }
};

float element(const void* data, cudaDataType type, std::int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
  return type == CUDA_R_16F ? fleetrun::f16_to_f32(bits) : fleetrun::bf16_to_f32(bits);
}

void put(float value, void* data, cudaDataType type, std::int64_t i) {
  if (type == CUDA_R_32F)
    static_cast<float*>(data)[i] = value;
  else
    static_cast<std::uint16_t*>(data)[i] =
        type == CUDA_R_16F ? fleetrun::f32_to_f16(value) : fleetrun::f32_to_bf16(value);
}

// Row by row.
std::vector<double> read(const void* data, const Matrix& shape, cublasOperation_t operation) {
  const bool as_it_is = operation == CUBLAS_OP_N;
  const std::int64_t rows = as_it_is ? shape.rows : shape.columns;
  const std::int64_t columns = as_it_is ? shape.columns : shape.rows;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      values.push_back(static_cast<double>(
          element(data, shape.type, as_it_is ? column * shape.step + row : row * shape.step + column)));
  return values;
}

void expect(const void* data, const Matrix& shape) {
  on_host::expect_reachable(
      data, static_cast<std::size_t>(shape.step * shape.columns) * shape.element_bytes(), "a product");
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): cuBLASLt's names
extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t) { return "an error"; }
std::size_t cublasLtGetVersion() { return 0; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t step) {
  if (type != CUDA_R_32F && type != CUDA_R_16F && type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  return make<Matrix>(layout, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), step,
                      type);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t type) {
  const bool known = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  return known && type == CUDA_R_32F ? make<Product>(description) : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t what, const void* value,
                                              std::size_t bytes) {
  auto& product = in<Product>(description);
  if (what == CUBLASLT_MATMUL_DESC_TRANSA) take(product.a, value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_TRANSB) take(product.b, value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_EPILOGUE) take(product.epilogue, value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_BIAS_POINTER) take(product.bias, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make<Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void* value, std::size_t bytes) {
  auto& wanted = in<Preference>(preference);
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    take(wanted.workspace, value, bytes);
  else
    take(wanted.alignment, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t made,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  const Sizes sizes(in<Product>(description), in<Matrix>(a), in<Matrix>(b), in<Matrix>(made));
  const auto& wanted = in<Preference>(preference);
  if (wanted.alignment > 64) on_host::refuse("a product would want a better alignment than values have");
  *count = wanted.workspace >= kWorkspace ? 1 : 0;
  if (*count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].workspaceSize = kWorkspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a_layout, const void* b_data,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* made_data, cublasLtMatrixLayout_t made_layout,
                              const cublasLtMatmulAlgo_t*, void* workspace, std::size_t bytes,
                              cudaStream_t stream) {
  const std::lock_guard lock(on_host::machine());
  const Product how = in<Product>(description);
  const Matrix a = in<Matrix>(a_layout), b = in<Matrix>(b_layout), made = in<Matrix>(made_layout);
  const Sizes sizes(how, a, b, made);
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    on_host::refuse("a factor that nobody wants");
  if (bytes < kWorkspace || reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    on_host::refuse("a product has not the workspace that it wants");
  on_host::expect_reachable(workspace, bytes, "a product's workspace");
  expect(a_data, a), expect(b_data, b), expect(made_data, made);
  const bool with_bias = how.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (with_bias)
    on_host::expect_reachable(how.bias, static_cast<std::size_t>(sizes.m) * made.element_bytes(),
                              "a product's bias");
  on_host::give_kernel(stream, &on_host::Counts::cublas, [=] {
    const auto m = static_cast<std::size_t>(sizes.m), k = static_cast<std::size_t>(sizes.k),
               n = static_cast<std::size_t>(sizes.n);
    std::vector<double> sums(m * n);
    if (with_bias)
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = static_cast<double>(element(how.bias, made.type, static_cast<std::int64_t>(i / n)));
    on_host::add_product({m, k, n, n}, read(a_data, a, how.a).data(), read(b_data, b, how.b).data(),
                         sums.data());
    for (std::int64_t row = 0; row < sizes.m; ++row)
      for (std::int64_t column = 0; column < sizes.n; ++column)
        put(static_cast<float>(sums[static_cast<std::size_t>(row * sizes.n + column)]), made_data, made.type,
            column * made.step + row);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
