// Batch normalisation over all ranks: sums of this rank's images, and what is made of the sums of all ranks. An element of
// b bytes costs b bytes in sync_norm_sums, 2 b in sync_norm_grad_sums and sync_norm, and 3 b in sync_norm_grad.
#include "cuda/plugin/sync_batch_norm.h"

#include "cuda/plugin/channel_sums.cuh"
#include "cuda/plugin/divisor.cuh"
#include "cuda/plugin/elements.cuh"

namespace fleetrun::cuda {
namespace {

// Of x - mean, and of its square. b bytes read per element. Predicted share of the memory bandwidth: 0.5 in f32 and 0.3
// in f16 and bf16, as in channel_sums.cuh.
template <typename T>
struct Moments {
  using Sum = TwoSums;
  const T* x;
  const float* mean;

  __host__ __device__ static int count() { return 1; }
  __device__ void add(int, std::int64_t at, std::int64_t channel, TwoSums& sums) const {
    const double apart = static_cast<double>(static_cast<float>(x[at])) - static_cast<double>(mean[channel]);
    sums.first += apart;
    sums.second += apart * apart;
  }
};

// Of dy, and of dy * (x - mean). 2 b bytes read per element. Predicted share of the memory bandwidth: 0.5 in f32 and 0.3
// in f16 and bf16, as in channel_sums.cuh.
template <typename T>
struct GradientMoments {
  using Sum = TwoSums;
  const T *x, *dy;
  const float* mean;

  __host__ __device__ static int count() { return 1; }
  __device__ void add(int, std::int64_t at, std::int64_t channel, TwoSums& sums) const {
    const auto gradient = static_cast<double>(static_cast<float>(dy[at]));
    const float apart = static_cast<float>(x[at]) - mean[channel];
    sums.first += gradient;
    sums.second += gradient * static_cast<double>(apart);
  }
};

// The sums as the ranks exchange them: [2 * channels + 1], the last one the values of a channel.
struct SumsOfRank {
  float* sums;
  std::int64_t channels;
  float values;

  __device__ void operator()(int, std::int64_t channel, const TwoSums& of_rank) const {
    sums[channel] = static_cast<float>(of_rank.first);
    sums[channels + channel] = static_cast<float>(of_rank.second);
    if (channel == 0) sums[2 * channels] = values;
  }
};

__device__ double inverse_of(float variance, double epsilon) {
  return 1.0 / sqrt(static_cast<double>(variance) + epsilon);
}

struct GradientSumsOfRank {
  SumsOfRank sums;
  NormGradSums arrays;
  double epsilon;

  __device__ void operator()(int which, std::int64_t channel, const TwoSums& of_rank) const {
    sums(which, channel, of_rank);
    arrays.dbias[channel] = static_cast<float>(of_rank.first);
    arrays.dscale[channel] =
        static_cast<float>(of_rank.second * inverse_of(arrays.variance[channel], epsilon));
  }
};

SumsOfRank sums_of_rank(const NormImages& images, float* sums) {
  return {sums, images.sizes.channels, static_cast<float>(images.sizes.outer * images.sizes.inner)};
}

// The channel of an element, and of those beside it in its pack.
class ChannelOf {
 public:
  explicit ChannelOf(const Channels& sizes)
      : inner_(static_cast<int>(sizes.inner)),
        channels_(static_cast<int>(sizes.channels)),
        step_(sizes.inner == 1 ? 1 : 0) {}
  __device__ std::uint32_t operator()(std::int64_t element) const {
    return channels_.divide(inner_.divide(static_cast<std::uint32_t>(element)).quotient).rest;
  }
  __device__ std::uint32_t step() const { return step_; }

 private:
  Divisor inner_, channels_;
  std::uint32_t step_;
};

// Whether packs end where channels do.
bool in_packs(const Channels& sizes) {
  return (sizes.inner == 1 ? sizes.channels : sizes.inner) % kWide == 0;
}

// From the sums of all ranks: the statistics, and `factor` of each channel. 20 bytes read and 20 written per channel.
// Predicted share of the memory bandwidth: below 0.01, because its launch takes longer than moving the bytes.
__global__ void take_statistics(SyncNorm norm, NormSettings settings, float* factor, std::int64_t channels) {
  FLEETRUN_EACH(c, channels) {
    const auto count = static_cast<double>(norm.sums[2 * channels]);
    const double apart = static_cast<double>(norm.sums[c]) / count;
    const double spread = static_cast<double>(norm.sums[channels + c]) / count - apart * apart;
    const auto mean = static_cast<float>(static_cast<double>(norm.mean[c]) + apart);
    const auto variance = static_cast<float>(fmax(0.0, spread));
    norm.batch_mean[c] = mean;
    norm.batch_variance[c] = variance;
    norm.mean[c] = norm.mean[c] * settings.keep + mean * settings.take;
    norm.variance[c] = norm.variance[c] * settings.keep + variance * settings.take;
    factor[c] = static_cast<float>(static_cast<double>(norm.scale[c]) /
                                   sqrt(static_cast<double>(variance) + settings.epsilon));
  }
}

// dx = factor * (dy - shift - (x - mean) * slope)
struct GradientFactors {
  float *factor, *shift, *slope;
};

// 16 bytes read and 12 written per channel. Predicted share of the memory bandwidth: below 0.01, because its launch takes
// longer than moving the bytes.
__global__ void take_gradient_sums(SyncNormGrad norm, double epsilon, GradientFactors made,
                                   std::int64_t channels) {
  FLEETRUN_EACH(c, channels) {
    const auto count = static_cast<double>(norm.sums[2 * channels]);
    const double inverse = inverse_of(norm.variance[c], epsilon);
    made.factor[c] = static_cast<float>(static_cast<double>(norm.scale[c]) /
                                        sqrt(static_cast<double>(norm.variance[c]) + epsilon));
    made.shift[c] = static_cast<float>(static_cast<double>(norm.sums[c]) / count);
    made.slope[c] =
        static_cast<float>(static_cast<double>(norm.sums[channels + c]) * inverse * inverse / count);
  }
}

// b bytes read and b written per element. Predicted share of the memory bandwidth: 0.7 in f32 and 0.5 in f16 and bf16,
// because each element also reads three numbers of its channel from the cache.
template <int width, typename T>
void normalise(const NormImages& images, const SyncNorm& norm, const float* factor, cudaStream_t stream) {
  const ChannelOf channel_of(images.sizes);
  const auto* const x = static_cast<const T*>(norm.x);
  auto* const y = static_cast<T*>(norm.y);
  const float *mean = norm.batch_mean, *bias = norm.bias;
  run_each(images.count() / width, stream, [=] __device__(std::int64_t i) {
    float values[width];
    load<T>(x, i * width, values);
    std::uint32_t channel = channel_of(i * width);
    for (int k = 0; k < width; ++k, channel += channel_of.step())
      values[k] = (values[k] - mean[channel]) * factor[channel] + bias[channel];
    store<T>(y, i * width, values);
  });
}

// 2 b bytes read and b written per element. Predicted share of the memory bandwidth: 0.7 in f32 and 0.5 in f16 and bf16,
// because each element also reads four numbers of its channel from the cache.
template <int width, typename T>
void gradient(const NormImages& images, const SyncNormGrad& norm, const GradientFactors& factors,
              cudaStream_t stream) {
  const ChannelOf channel_of(images.sizes);
  const auto *const x = static_cast<const T*>(norm.x), *const dy = static_cast<const T*>(norm.dy);
  auto* const dx = static_cast<T*>(norm.dx);
  const float *mean = norm.mean, *factor = factors.factor, *shift = factors.shift, *slope = factors.slope;
  run_each(images.count() / width, stream, [=] __device__(std::int64_t i) {
    float values[width], made[width];
    load<T>(x, i * width, values);
    load<T>(dy, i * width, made);
    std::uint32_t channel = channel_of(i * width);
    for (int k = 0; k < width; ++k, channel += channel_of.step())
      made[k] = factor[channel] * (made[k] - shift[channel] - (values[k] - mean[channel]) * slope[channel]);
    store<T>(dx, i * width, made);
  });
}

}  // namespace

std::size_t bytes_of_norm_sums(const NormImages& images) {
  return bytes_of_channel_sums<TwoSums>(images.sizes, 1);
}

std::size_t bytes_of_norm_factors(const NormImages& images) {
  constexpr std::size_t kMostFactors = 3;
  return kMostFactors * static_cast<std::size_t>(images.sizes.channels) * sizeof(float);
}

void sync_norm_sums(const NormImages& images, const void* x, const float* mean, float* sums, void* scratch,
                    cudaStream_t stream) {
  for_type(images.type, [&]<typename T>() {
    sum_channels(Moments<T>{static_cast<const T*>(x), mean}, sums_of_rank(images, sums), images.sizes,
                 scratch, stream);
  });
}

void sync_norm_grad_sums(const NormImages& images, const NormGradSums& arrays, double epsilon, void* scratch,
                         cudaStream_t stream) {
  const GradientSumsOfRank sink = {sums_of_rank(images, arrays.sums), arrays, epsilon};
  for_type(images.type, [&]<typename T>() {
    const GradientMoments<T> source = {static_cast<const T*>(arrays.x), static_cast<const T*>(arrays.dy),
                                       arrays.mean};
    sum_channels(source, sink, images.sizes, scratch, stream);
  });
}

void sync_norm(const NormImages& images, const SyncNorm& arrays, const NormSettings& settings, void* scratch,
               cudaStream_t stream) {
  auto* const factor = static_cast<float*>(scratch);
  start_elements(take_statistics, images.sizes.channels, stream, arrays, settings, factor);
  for_type(images.type, [&]<typename T>() {
    with_width(in_packs(images.sizes),
               [&](auto width) { normalise<decltype(width)::value, T>(images, arrays, factor, stream); });
  });
}

void sync_norm_grad(const NormImages& images, const SyncNormGrad& arrays, double epsilon, void* scratch,
                    cudaStream_t stream) {
  auto* const factor = static_cast<float*>(scratch);
  const GradientFactors factors = {factor, factor + images.sizes.channels,
                                   factor + 2 * images.sizes.channels};
  start_elements(take_gradient_sums, images.sizes.channels, stream, arrays, epsilon, factors);
  for_type(images.type, [&]<typename T>() {
    with_width(in_packs(images.sizes),
               [&](auto width) { gradient<decltype(width)::value, T>(images, arrays, factors, stream); });
  });
}

}  // namespace fleetrun::cuda
