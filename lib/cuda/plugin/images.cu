// Kernels on images: pooling, frames of zeros, turning to channels last and back, and the running statistics of
// batch_norm. Gradients are gathered, each
// element of dx by one thread, so that their sums have one order.
#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {
namespace {

struct Span {
  int begin, end;
};

// The elements of x that window `index` sees along an axis.
__device__ Span span(const Pooling& p, int axis, int index) {
  const int first = index * p.strides[axis] - p.before[axis];
  return {max(first, 0), min(first + p.kernel[axis], p.in[axis])};
}

// The windows along an axis that see the element `at` of x.
__device__ Span windows(const Pooling& p, int axis, int at) {
  const int from = at + p.before[axis] - p.kernel[axis] + 1;
  const int first = from > 0 ? (from + p.strides[axis] - 1) / p.strides[axis] : 0;
  return {first, min((at + p.before[axis]) / p.strides[axis] + 1, p.out[axis])};
}

__device__ float share(const Pooling& p, Span rows, Span columns) {
  const int count =
      p.exclusive ? (rows.end - rows.begin) * (columns.end - columns.begin) : p.kernel[0] * p.kernel[1];
  return 1.0F / static_cast<float>(count);
}

// Where an element lies: the element `lane` of those side by side at a pixel.
struct Place {
  std::int64_t plane;
  int row, column, lane;
};
__device__ Place place(std::int64_t i, const int (&size)[2], int lanes) {
  const std::int64_t pixel = i / lanes, row = pixel / size[1];
  return {row / size[0], static_cast<int>(row % size[0]), static_cast<int>(pixel % size[1]),
          static_cast<int>(i % lanes)};
}

__device__ std::int64_t offset(const Place& at, int row, int column, const int (&size)[2], int lanes) {
  return ((at.plane * size[0] + row) * size[1] + column) * lanes + at.lane;
}

__global__ void max_windows(const float* x, float* y, Pooling p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.out, p.lanes);
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    float highest = x[offset(at, rows.begin, columns.begin, p.in, p.lanes)];
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const float value = x[offset(at, row, column, p.in, p.lanes)];
        if (value > highest || value != value) highest = value;  // NaN stays
      }
    y[i] = highest;
  }
}

// Whether no element of the window before `at` is its maximum too.
__device__ bool first_maximum(const Pooling& p, const float* x, float highest, Span rows, Span columns,
                              const Place& at) {
  for (int row = rows.begin; row <= at.row; ++row)
    for (int column = columns.begin; column < columns.end; ++column) {
      if (row == at.row && column == at.column) return true;
      if (x[offset(at, row, column, p.in, p.lanes)] == highest) return false;
    }
  return true;
}

__global__ void max_grad_elements(const float* x, const float* y, const float* dy, float* dx, Pooling p,
                                  std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.in, p.lanes);
    const Span rows = windows(p, 0, at.row), columns = windows(p, 1, at.column);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const std::int64_t window = offset(at, row, column, p.out, p.lanes);
        if (x[i] != y[window]) continue;
        if (first_maximum(p, x, y[window], span(p, 0, row), span(p, 1, column), at)) sum += dy[window];
      }
    dx[i] = sum;
  }
}

__global__ void average_windows(const float* x, float* y, Pooling p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.out, p.lanes);
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column)
        sum += x[offset(at, row, column, p.in, p.lanes)];
    y[i] = sum * share(p, rows, columns);
  }
}

__global__ void average_grad_elements(const float* dy, float* dx, Pooling p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.in, p.lanes);
    const Span rows = windows(p, 0, at.row), columns = windows(p, 1, at.column);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column)
        sum += dy[offset(at, row, column, p.out, p.lanes)] * share(p, span(p, 0, row), span(p, 1, column));
    dx[i] = sum;
  }
}

__global__ void frame_elements(const float* x, float* framed, Frame f, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, f.out, f.lanes);
    const int row = at.row - f.before[0], column = at.column - f.before[1];
    const bool inside = row >= 0 && row < f.in[0] && column >= 0 && column < f.in[1];
    framed[i] = inside ? x[offset(at, row, column, f.in, f.lanes)] : 0.0F;
  }
}

__global__ void inner_elements(const float* framed, float* x, Frame f, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, f.in, f.lanes);
    x[i] = framed[offset(at, at.row + f.before[0], at.column + f.before[1], f.out, f.lanes)];
  }
}

__global__ void turn_elements(const float* x, float* y, Turn sizes, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const std::int64_t row = i % sizes.rows, column = i / sizes.rows % sizes.columns;
    const std::int64_t image = i / sizes.rows / sizes.columns;
    y[i] = x[(image * sizes.rows + row) * sizes.columns + column];
  }
}

__global__ void move_channels(Statistics s, double epsilon, float keep, float take, std::int64_t channels) {
  FLEETRUN_EACH(c, channels) {
    const auto inverse = static_cast<double>(s.inverse[c]);
    const auto variance = static_cast<float>(fmax(1.0 / (inverse * inverse) - epsilon, 0.0));
    s.batch_variance[c] = variance;
    s.mean[c] = s.mean[c] * keep + s.batch_mean[c] * take;
    s.variance[c] = s.variance[c] * keep + variance * take;
  }
}

__global__ void invert_channels(const float* variance, float* inverse, double epsilon, std::int64_t channels) {
  FLEETRUN_EACH(c, channels)
  inverse[c] = static_cast<float>(1.0 / sqrt(static_cast<double>(variance[c]) + epsilon));
}

template <typename Sizes>
std::int64_t elements(const Sizes& sizes, const int (&size)[2]) {
  return sizes.planes * sizes.lanes * size[0] * size[1];
}

}  // namespace

void max_pool(const float* x, float* y, const Pooling& p, cudaStream_t stream) {
  start_elements(max_windows, elements(p, p.out), stream, x, y, p);
}

void max_pool_grad(const float* x, const float* y, const float* dy, float* dx, const Pooling& p,
                   cudaStream_t stream) {
  start_elements(max_grad_elements, elements(p, p.in), stream, x, y, dy, dx, p);
}

void average_pool(const float* x, float* y, const Pooling& p, cudaStream_t stream) {
  start_elements(average_windows, elements(p, p.out), stream, x, y, p);
}

void average_pool_grad(const float* dy, float* dx, const Pooling& p, cudaStream_t stream) {
  start_elements(average_grad_elements, elements(p, p.in), stream, dy, dx, p);
}

void put_into_frame(const float* x, float* framed, const Frame& f, cudaStream_t stream) {
  start_elements(frame_elements, elements(f, f.out), stream, x, framed, f);
}

void take_from_frame(const float* framed, float* x, const Frame& f, cudaStream_t stream) {
  start_elements(inner_elements, elements(f, f.in), stream, framed, x, f);
}

void turn(const float* x, float* y, const Turn& sizes, cudaStream_t stream) {
  start_elements(turn_elements, sizes.images * sizes.rows * sizes.columns, stream, x, y, sizes);
}

void move_statistics(const Statistics& s, double epsilon, float keep, float take, int channels,
                     cudaStream_t stream) {
  start_elements(move_channels, channels, stream, s, epsilon, keep, take);
}

void inverse_deviation(const float* variance, float* inverse, double epsilon, int channels,
                       cudaStream_t stream) {
  start_elements(invert_channels, channels, stream, variance, inverse, epsilon);
}

}  // namespace fleetrun::cuda
