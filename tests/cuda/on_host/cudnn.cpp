// What the plug-in uses of cuDNN: convolutions and batch normalisation of four-dimensional f32 tensors, NCHW and NHWC, by
// their definitions. Of two algorithms the faster one gives other bits each time, and a slower one wants a workspace.
#include <cudnn.h>

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;

// Sizes as n, c, h, w (filters: k, c, r, s), with the step from one to the next of each.
struct cudnnTensorStruct {
  std::array<std::int64_t, 4> sizes{}, steps{};
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;

  void set(cudnnTensorFormat_t layout, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    format = layout;
    sizes = {n, c, h, w};
    if (layout == CUDNN_TENSOR_NCHW)
      steps = {c * h * w, h * w, w, 1};
    else
      steps = {h * w * c, 1, w * c, c};
  }
  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * steps[0] + c * steps[1] + h * steps[2] + w * steps[3];
  }
  std::int64_t count() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  void expect(const void* data, const char* who) const {
    on_host::expect_reachable(data, static_cast<std::size_t>(count()) * sizeof(float), who);
  }
};
struct cudnnFilterStruct : cudnnTensorStruct {};
struct cudnnConvolutionStruct {
  std::array<std::int64_t, 2> padding{}, strides{}, dilations{};
  std::int64_t groups = 1;
};
struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using Tensor = cudnnTensorStruct;

constexpr std::size_t kWorkspace = 1000;  // of algorithm 1

struct Convolution {
  Tensor x, w, y;
  cudnnConvolutionStruct how;

  Convolution(cudnnTensorDescriptor_t image, cudnnFilterDescriptor_t filter,
              cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t made)
      : x(*image), w(*filter), y(*made), how(*convolution) {
    if (x.format != w.format || x.format != y.format) on_host::refuse("a convolution of mixed layouts");
    if (y.sizes[0] != x.sizes[0] || y.sizes[1] != w.sizes[0] || w.sizes[1] * how.groups != x.sizes[1])
      on_host::refuse("a convolution of sizes that do not fit");
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t reach = how.dilations[axis] * (w.sizes[axis + 2] - 1) + 1;
      const std::int64_t room = x.sizes[axis + 2] + 2 * how.padding[axis] - reach;
      if (y.sizes[axis + 2] != room / how.strides[axis] + 1)
        on_host::refuse("a convolution of sizes that do not fit");
    }
  }

  // visit(place in x, place in w, place in y) for all products of the convolution.
  template <typename Visit>
  void each_product(const Visit& visit) const {
    const std::int64_t per_group = y.sizes[1] / how.groups;
    for (std::int64_t n = 0; n < y.sizes[0]; ++n)
      for (std::int64_t k = 0; k < y.sizes[1]; ++k)
        for (std::int64_t i = 0; i < y.sizes[2]; ++i)
          for (std::int64_t j = 0; j < y.sizes[3]; ++j)
            for (std::int64_t r = 0; r < w.sizes[2]; ++r)
              for (std::int64_t s = 0; s < w.sizes[3]; ++s) {
                const std::int64_t row = i * how.strides[0] - how.padding[0] + r * how.dilations[0];
                const std::int64_t column = j * how.strides[1] - how.padding[1] + s * how.dilations[1];
                if (row < 0 || row >= x.sizes[2] || column < 0 || column >= x.sizes[3]) continue;
                const std::int64_t from = x.at(n, k / per_group * w.sizes[1], row, column);
                const std::int64_t by = w.at(k, 0, r, s), to = y.at(n, k, i, j);
                for (std::int64_t c = 0; c < w.sizes[1]; ++c)
                  visit(from + c * x.steps[1], by + c * w.steps[1], to);
              }
  }
};

template <typename Offer, typename Number>
cudnnStatus_t offer(int wanted, int* count, Offer* offers, Number first, Number second, Number third) {
  const std::array<Offer, 3> all = {
      Offer{.algo = second,
            .status = CUDNN_STATUS_SUCCESS,
            .memory = 0,
            .determinism = CUDNN_NON_DETERMINISTIC},
      Offer{.algo = third,
            .status = CUDNN_STATUS_SUCCESS,
            .memory = kWorkspace,
            .determinism = CUDNN_DETERMINISTIC},
      Offer{.algo = first, .status = CUDNN_STATUS_SUCCESS, .memory = 0, .determinism = CUDNN_DETERMINISTIC}};
  *count = std::min(wanted, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *count, offers);
  return CUDNN_STATUS_SUCCESS;
}

// As the plug-in has to: one of those that were offered for good, with its workspace.
void expect_algorithm(int number, int first, int third, const void* workspace, std::size_t bytes) {
  if (number != first && number != third)
    on_host::refuse("a convolution by an algorithm of other bits each time");
  if (number != third) return;
  if (bytes < kWorkspace) on_host::refuse("a convolution has not the workspace that it wants");
  on_host::expect_reachable(workspace, bytes, "a convolution's workspace");
  if (reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0) on_host::refuse("a workspace lies askew");
}

void expect_one_and_zero(const void* alpha, const void* beta) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    on_host::refuse("a factor that nobody wants");
}

std::vector<double> zeros(const Tensor& tensor) {
  return std::vector<double>(static_cast<std::size_t>(tensor.count()));
}

void put(const std::vector<double>& from, float* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
}

// visit(place in the image) for all pixels of a channel.
template <typename Visit>
void each_pixel(const Tensor& image, std::int64_t channel, const Visit& visit) {
  for (std::int64_t n = 0; n < image.sizes[0]; ++n)
    for (std::int64_t h = 0; h < image.sizes[2]; ++h)
      for (std::int64_t w = 0; w < image.sizes[3]; ++w) visit(image.at(n, channel, h, w));
}

double pixels_of(const Tensor& image) {
  return static_cast<double>(image.sizes[0] * image.sizes[2] * image.sizes[3]);
}

void expect_norm(const Tensor& image, const Tensor& other, const Tensor& channels) {
  if (other.sizes != image.sizes || other.steps != image.steps)
    on_host::refuse("batch norm of mixed layouts");
  if (channels.sizes != std::array<std::int64_t, 4>{1, image.sizes[1], 1, 1})
    on_host::refuse("batch norm of sizes that do not fit");
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): cuDNN's names
extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error"; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  *made = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->set(format, n, c, h, w);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  *made = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->set(format, k, c, h, w);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  *made = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h, int pad_w,
                                              int u, int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t type) {
  if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->padding = {pad_h, pad_w};
  descriptor->strides = {u, v};
  descriptor->dilations = {dilation_h, dilation_w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  descriptor->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t how,
                                                     cudnnTensorDescriptor_t y, int wanted, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* offers) {
  const Convolution convolution(x, w, how, y);
  return offer(wanted, count, offers, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
               CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     const void* in, cudnnFilterDescriptor_t w,
                                                     const void* by, cudnnConvolutionDescriptor_t how,
                                                     cudnnTensorDescriptor_t y, void* out, int wanted,
                                                     int* count, cudnnConvolutionFwdAlgoPerf_t* offers,
                                                     void* workspace, std::size_t bytes) {
  const std::lock_guard lock(on_host::machine());
  x->expect(in, "a search"), w->expect(by, "a search"), y->expect(out, "a search");
  on_host::expect_reachable(workspace, bytes, "a search");
  return cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, how, y, wanted, count, offers);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                      const void* in, cudnnFilterDescriptor_t w, const void* by,
                                      cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t y, void* out) {
  const std::lock_guard lock(on_host::machine());
  expect_one_and_zero(alpha, beta);
  expect_algorithm(algorithm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace, bytes);
  x->expect(in, "a convolution"), w->expect(by, "a convolution"), y->expect(out, "a convolution");
  on_host::give(handle->stream, [=, convolution = Convolution(x, w, how, y)] {
    std::vector<double> sums = zeros(convolution.y);
    const auto* const image = static_cast<const float*>(in);
    const auto* const weight = static_cast<const float*>(by);
    convolution.each_product([&](std::int64_t i, std::int64_t j, std::int64_t to) {
      sums[static_cast<std::size_t>(to)] += static_cast<double>(image[i]) * static_cast<double>(weight[j]);
    });
    put(sums, static_cast<float*>(out));
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy,
                                                          cudnnConvolutionDescriptor_t how,
                                                          cudnnTensorDescriptor_t dx, int wanted, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* offers) {
  const Convolution convolution(dx, w, how, dy);
  return offer(wanted, count, offers, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
               CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, const void* by, cudnnTensorDescriptor_t dy,
    const void* from, cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t dx, void* to, int wanted,
    int* count, cudnnConvolutionBwdDataAlgoPerf_t* offers, void* workspace, std::size_t bytes) {
  const std::lock_guard lock(on_host::machine());
  dy->expect(from, "a search"), w->expect(by, "a search"), dx->expect(to, "a search");
  on_host::expect_reachable(workspace, bytes, "a search");
  return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, dy, how, dx, wanted, count, offers);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w,
                                           const void* by, cudnnTensorDescriptor_t dy, const void* from,
                                           cudnnConvolutionDescriptor_t how,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t bytes, const void* beta, cudnnTensorDescriptor_t dx,
                                           void* to) {
  const std::lock_guard lock(on_host::machine());
  expect_one_and_zero(alpha, beta);
  expect_algorithm(algorithm, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
                   workspace, bytes);
  dy->expect(from, "a convolution"), w->expect(by, "a convolution"), dx->expect(to, "a convolution");
  on_host::give(handle->stream, [=, convolution = Convolution(dx, w, how, dy)] {
    std::vector<double> sums = zeros(convolution.x);
    const auto* const gradient = static_cast<const float*>(from);
    const auto* const weight = static_cast<const float*>(by);
    convolution.each_product([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      sums[static_cast<std::size_t>(i)] += static_cast<double>(gradient[k]) * static_cast<double>(weight[j]);
    });
    put(sums, static_cast<float*>(to));
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t how,
    cudnnFilterDescriptor_t dw, int wanted, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* offers) {
  const Convolution convolution(x, dw, how, dy);
  return offer(wanted, count, offers, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, const void* in, cudnnTensorDescriptor_t dy,
    const void* from, cudnnConvolutionDescriptor_t how, cudnnFilterDescriptor_t dw, void* to, int wanted,
    int* count, cudnnConvolutionBwdFilterAlgoPerf_t* offers, void* workspace, std::size_t bytes) {
  const std::lock_guard lock(on_host::machine());
  x->expect(in, "a search"), dy->expect(from, "a search"), dw->expect(to, "a search");
  on_host::expect_reachable(workspace, bytes, "a search");
  return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, dy, how, dw, wanted, count, offers);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t x, const void* in,
                                             cudnnTensorDescriptor_t dy, const void* from,
                                             cudnnConvolutionDescriptor_t how,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void* beta, cudnnFilterDescriptor_t dw,
                                             void* to) {
  const std::lock_guard lock(on_host::machine());
  expect_one_and_zero(alpha, beta);
  expect_algorithm(algorithm, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
                   workspace, bytes);
  x->expect(in, "a convolution"), dy->expect(from, "a convolution"), dw->expect(to, "a convolution");
  on_host::give(handle->stream, [=, convolution = Convolution(x, dw, how, dy)] {
    std::vector<double> sums = zeros(convolution.w);
    const auto* const image = static_cast<const float*>(in);
    const auto* const gradient = static_cast<const float*>(from);
    convolution.each_product([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      sums[static_cast<std::size_t>(j)] += static_cast<double>(image[i]) * static_cast<double>(gradient[k]);
    });
    put(sums, static_cast<float*>(to));
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t,
                                                      const void* alpha, const void* beta,
                                                      cudnnTensorDescriptor_t x, const void* in,
                                                      cudnnTensorDescriptor_t y, void* out,
                                                      cudnnTensorDescriptor_t channels, const void* scale,
                                                      const void* bias, const void* mean,
                                                      const void* variance, double epsilon) {
  const std::lock_guard lock(on_host::machine());
  expect_one_and_zero(alpha, beta);
  expect_norm(*x, *y, *channels);
  x->expect(in, "batch norm"), y->expect(out, "batch norm");
  for (const void* each : {scale, bias, mean, variance}) channels->expect(each, "batch norm");
  on_host::give(handle->stream, [=, image = *x] {
    for (std::int64_t c = 0; c < image.sizes[1]; ++c) {
      const auto of = [c](const void* values) {
        return static_cast<double>(static_cast<const float*>(values)[c]);
      };
      const double factor = of(scale) / std::sqrt(of(variance) + epsilon), m = of(mean), b = of(bias);
      each_pixel(image, c, [&](std::int64_t i) {
        static_cast<float*>(out)[i] =
            static_cast<float>((static_cast<double>(static_cast<const float*>(in)[i]) - m) * factor + b);
      });
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x, const void* in, cudnnTensorDescriptor_t y, void* out,
    cudnnTensorDescriptor_t channels, const void* scale, const void* bias, double, void* running_mean,
    void* running_variance, double epsilon, void* saved_mean, void* saved_inverse) {
  const std::lock_guard lock(on_host::machine());
  expect_one_and_zero(alpha, beta);
  expect_norm(*x, *y, *channels);
  if (running_mean != nullptr || running_variance != nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  x->expect(in, "batch norm"), y->expect(out, "batch norm");
  const std::array<const void*, 4> of_channels = {scale, bias, saved_mean, saved_inverse};
  for (const void* each : of_channels) channels->expect(each, "batch norm");
  if (in == out) on_host::refuse("batch norm in the place of its input");
  on_host::give(handle->stream, [=, image = *x] {
    const auto value = [in](std::int64_t i) { return static_cast<double>(static_cast<const float*>(in)[i]); };
    for (std::int64_t c = 0; c < image.sizes[1]; ++c) {
      double sum = 0, squares = 0;
      each_pixel(image, c, [&](std::int64_t i) { sum += value(i); });
      const double mean = sum / pixels_of(image);
      each_pixel(image, c, [&](std::int64_t i) { squares += (value(i) - mean) * (value(i) - mean); });
      const double inverse = 1 / std::sqrt(squares / pixels_of(image) + epsilon);
      static_cast<float*>(saved_mean)[c] = static_cast<float>(mean);
      static_cast<float*>(saved_inverse)[c] = static_cast<float>(inverse);
      const auto s = static_cast<double>(static_cast<const float*>(scale)[c]);
      const auto b = static_cast<double>(static_cast<const float*>(bias)[c]);
      each_pixel(image, c, [&](std::int64_t i) {
        static_cast<float*>(out)[i] = static_cast<float>((value(i) - mean) * inverse * s + b);
      });
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t, const void* alpha,
                                              const void* beta, const void* alpha_channels,
                                              const void* beta_channels, cudnnTensorDescriptor_t x,
                                              const void* in, cudnnTensorDescriptor_t dy, const void* from,
                                              cudnnTensorDescriptor_t dx, void* to,
                                              cudnnTensorDescriptor_t channels, const void* scale,
                                              void* dscale, void* dbias, double, const void* saved_mean,
                                              const void* saved_inverse) {
  const std::lock_guard lock(on_host::machine());
  expect_one_and_zero(alpha, beta);
  expect_one_and_zero(alpha_channels, beta_channels);
  expect_norm(*x, *dy, *channels);
  expect_norm(*x, *dx, *channels);
  x->expect(in, "batch norm"), dy->expect(from, "batch norm"), dx->expect(to, "batch norm");
  const std::array<const void*, 5> of_channels = {scale, dscale, dbias, saved_mean, saved_inverse};
  for (const void* each : of_channels) channels->expect(each, "batch norm");
  if (in == to || from == to) on_host::refuse("batch norm in the place of its input");
  on_host::give(handle->stream, [=, image = *x] {
    const auto value = [](const void* of, std::int64_t i) {
      return static_cast<double>(static_cast<const float*>(of)[i]);
    };
    for (std::int64_t c = 0; c < image.sizes[1]; ++c) {
      const double mean = value(saved_mean, c), inverse = value(saved_inverse, c), s = value(scale, c);
      double sum = 0, products = 0;
      each_pixel(image, c, [&](std::int64_t i) {
        sum += value(from, i);
        products += value(from, i) * (value(in, i) - mean) * inverse;
      });
      const double n = pixels_of(image);
      each_pixel(image, c, [&](std::int64_t i) {
        const double z = (value(in, i) - mean) * inverse;
        static_cast<float*>(to)[i] =
            static_cast<float>(s * inverse * (value(from, i) - sum / n - z * products / n));
      });
      static_cast<float*>(dscale)[c] = static_cast<float>(products);
      static_cast<float*>(dbias)[c] = static_cast<float>(sum);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
