// What the plug-in uses of cuDNN's legacy interface: batch normalisation of four-dimensional f32 tensors by its definition.
#include <cudnn.h>

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cuda/on_host/cudnn_handle.h"
#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;

struct cudnnTensorStruct {
  std::array<std::int64_t, 4> sizes{};  // n, c, h, w

  // Row-major.
  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return ((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w;
  }
  std::int64_t count() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  void expect(const void* data, const char* who) const {
    on_host::expect_reachable(data, static_cast<std::size_t>(count()) * sizeof(float), who);
  }
};

namespace {

using Tensor = cudnnTensorStruct;

void expect_one_and_zero(const void* alpha, const void* beta) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    on_host::refuse("a factor that nobody wants");
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
  if (other.sizes != image.sizes) on_host::refuse("batch norm of mixed sizes");
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
  if (type != CUDNN_DATA_FLOAT || format != CUDNN_TENSOR_NCHW) return CUDNN_STATUS_NOT_SUPPORTED;
  descriptor->sizes = {n, c, h, w};
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
  on_host::give_kernel(handle->stream, &on_host::Counts::cudnn, [=, image = *x] {
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
  on_host::give_kernel(handle->stream, &on_host::Counts::cudnn, [=, image = *x] {
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
  on_host::give_kernel(handle->stream, &on_host::Counts::cudnn, [=, image = *x] {
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
