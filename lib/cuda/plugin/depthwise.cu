// Depthwise convolutions of a rectified image. A thread makes one element of y or dx, and neighbouring threads make
// neighbouring elements, so that each element of the image comes from memory about once. An element costs 4 bytes of each tensor: of x and y
// forward, of dy, x and dx for dx, of x and dy for dw.
#include "cuda/plugin/depthwise.h"

#include "cuda/plugin/channel_sums.cuh"
#include "cuda/plugin/divisor.cuh"
#include "cuda/plugin/elements.cuh"

namespace fleetrun::cuda {
namespace {

// A pixel of an image and a channel of it.
struct Place {
  int image, channel, row, column;
};

// Where the elements of an image [images, channels, rows, columns] lie.
class Grid {
 public:
  Grid(const Depthwise& sizes, int rows, int columns)
      : channels_(sizes.channels),
        rows_(rows),
        columns_(columns),
        last_(sizes.channels_last),
        of_channels_(channels_),
        of_rows_(rows),
        of_columns_(columns) {}

  __device__ Place place(std::int64_t element) const {
    auto rest = static_cast<std::uint32_t>(element);
    Place at{};
    if (last_) at.channel = take(rest, of_channels_);
    at.column = take(rest, of_columns_);
    at.row = take(rest, of_rows_);
    if (!last_) at.channel = take(rest, of_channels_);
    at.image = static_cast<int>(rest);
    return at;
  }
  __device__ std::int64_t first(const Place& at) const {  // of the row 0 and column 0
    const std::int64_t pixels = std::int64_t{rows_} * columns_;
    return last_ ? at.image * pixels * channels_ + at.channel
                 : (std::int64_t{at.image} * channels_ + at.channel) * pixels;
  }
  __device__ std::int64_t offset(int row, int column) const {  // from there
    return (std::int64_t{row} * columns_ + column) * (last_ ? channels_ : 1);
  }

 private:
  // The rest of a division; `number` becomes the quotient.
  __device__ static int take(std::uint32_t& number, const Divisor& by) {
    const auto [quotient, rest] = by.divide(number);
    number = quotient;
    return static_cast<int>(rest);
  }

  int channels_, rows_, columns_;
  bool last_;
  Divisor of_channels_, of_rows_, of_columns_;
};

Grid grid_of_x(const Depthwise& of) { return {of, of.rows.in, of.columns.in}; }
Grid grid_of_y(const Depthwise& of) { return {of, of.rows.out, of.columns.out}; }

Channels channels_of_y(const Depthwise& of) {
  const std::int64_t pixels = std::int64_t{of.rows.out} * of.columns.out;
  if (of.channels_last) return {of.images * pixels, of.channels, 1};
  return {of.images, of.channels, pixels};
}

std::int64_t count_of_x(const Depthwise& of) { return of.images * of.channels * of.rows.in * of.columns.in; }
std::int64_t count_of_y(const Depthwise& of) {
  return of.images * of.channels * of.rows.out * of.columns.out;
}

// Where neighbouring threads have neighbouring channels, so do their weights.
struct Weights {
  const float* w;
  int tap_step, channel_step;

  __device__ float at(int channel, int tap) const { return w[channel * channel_step + tap * tap_step]; }
};

// The kernel reads 4 bytes and writes 4 per weight. Predicted share of the memory bandwidth: below 0.01, because its
// launch takes longer than moving the bytes.
Weights weights_for(const Depthwise& of, const float* w, void* scratch, cudaStream_t stream) {
  const int taps = of.taps(), channels = of.channels;
  if (!of.channels_last) return {w, 1, taps};
  auto* const turned = static_cast<float*>(scratch);
  run_each(std::int64_t{taps} * channels, stream,
           [=] __device__(std::int64_t i) { turned[i] = w[i % channels * taps + i / channels]; });
  return {turned, channels, 1};
}

// What one tap sees of the row or column of an element of y; below 0 or beyond the image where it sees nothing.
__device__ int seen(const DepthwiseAxis& axis, int out, int tap) {
  return out * axis.stride - axis.before + tap * axis.dilation;
}
__device__ bool is_inside(int at, int size) { return at >= 0 && at < size; }

// The row or column of y of which this tap sees this one of x; -1 if there is none.
__device__ int seeing(const DepthwiseAxis& axis, int in, int tap) {
  const int moved = in + axis.before - tap * axis.dilation;
  if (moved < 0 || moved % axis.stride != 0) return -1;
  return moved / axis.stride < axis.out ? moved / axis.stride : -1;
}

// Of relu(x) under each tap times dy; after the taps of dy alone. 8 bytes read per element of y, once for each tap.
// Predicted share of the memory bandwidth: 0.08 for a 3 x 3 kernel, because ten sums each read the images again.
struct Products {
  using Sum = double;
  Depthwise of;
  Grid in, out;
  const float *x, *dy;
  int sums;

  __host__ __device__ int count() const { return sums; }
  __device__ void add(int tap, std::int64_t at, std::int64_t, double& sum) const {
    const auto gradient = static_cast<double>(dy[at]);
    if (tap == of.rows.kernel * of.columns.kernel) {
      sum += gradient;
      return;
    }
    const Place place = out.place(at);
    const int row = seen(of.rows, place.row, tap / of.columns.kernel);
    const int column = seen(of.columns, place.column, tap % of.columns.kernel);
    if (is_inside(row, of.rows.in) && is_inside(column, of.columns.in))
      sum += gradient * static_cast<double>(relu_of(x[in.first(place) + in.offset(row, column)]));
  }
};

struct WeightGradient {
  float *dw, *db;
  int taps;

  __device__ void operator()(int tap, std::int64_t channel, double sum) const {
    if (tap < taps)
      dw[channel * taps + tap] = static_cast<float>(sum);
    else
      db[channel] = static_cast<float>(sum);
  }
};

}  // namespace

std::size_t bytes_of_taps(const Depthwise& of) {
  return of.channels_last ? static_cast<std::size_t>(of.taps() * of.channels) * sizeof(float) : 0;
}

std::size_t bytes_of_products(const Depthwise& of) {
  return bytes_of_channel_sums<double>(channels_of_y(of), of.taps() + 1);
}

// 4 bytes read per element of x and 4 written per element of y. Predicted share of the memory bandwidth: 0.4 for a 3 x 3
// kernel, because each tap needs instructions for its place; less for larger kernels.
void relu_depthwise(const Depthwise& of, const float* x, const float* w, const float* b, float* y,
                    void* scratch, cudaStream_t stream) {
  const Grid in = grid_of_x(of), out = grid_of_y(of);
  const Weights weights = weights_for(of, w, scratch, stream);
  run_each(count_of_y(of), stream, [=] __device__(std::int64_t i) {
    const Place place = out.place(i);
    const float* const image = x + in.first(place);
    float sum = b == nullptr ? 0.0F : b[place.channel];
    for (int r = 0; r < of.rows.kernel; ++r) {
      const int row = seen(of.rows, place.row, r);
      if (!is_inside(row, of.rows.in)) continue;
      for (int c = 0; c < of.columns.kernel; ++c)
        if (const int column = seen(of.columns, place.column, c); is_inside(column, of.columns.in))
          sum +=
              weights.at(place.channel, r * of.columns.kernel + c) * relu_of(image[in.offset(row, column)]);
    }
    y[i] = sum;
  });
}

// 4 bytes read per element of dy, and 4 read and 4 written per element of x. Predicted share of the memory bandwidth: 0.2
// for a 3 x 3 kernel, because each tap needs divisions by the stride.
void relu_depthwise_grad_input(const Depthwise& of, const float* dy, const float* w, const float* x,
                               float* dx, void* scratch, cudaStream_t stream) {
  const Grid in = grid_of_x(of), out = grid_of_y(of);
  const Weights weights = weights_for(of, w, scratch, stream);
  run_each(count_of_x(of), stream, [=] __device__(std::int64_t i) {
    const Place place = in.place(i);
    const float* const gradient = dy + out.first(place);
    float sum = 0;
    for (int r = 0; r < of.rows.kernel; ++r) {
      const int row = seeing(of.rows, place.row, r);
      if (row < 0) continue;
      for (int c = 0; c < of.columns.kernel; ++c)
        if (const int column = seeing(of.columns, place.column, c); column >= 0)
          sum += weights.at(place.channel, r * of.columns.kernel + c) * gradient[out.offset(row, column)];
    }
    dx[i] = x[i] > 0.0F ? sum : 0.0F;
  });
}

void relu_depthwise_grad_weights(const Depthwise& of, const float* x, const float* dy, float* dw, float* db,
                                 void* scratch, cudaStream_t stream) {
  const Products products = {of, grid_of_x(of), grid_of_y(of), x, dy, of.taps() + (db == nullptr ? 0 : 1)};
  sum_channels(products, WeightGradient{dw, db, of.taps()}, channels_of_y(of), scratch, stream);
}

}  // namespace fleetrun::cuda
