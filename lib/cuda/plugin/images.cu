// Kernels on images: pooling, frames of zeros, and the running statistics of batch_norm. Gradients are gathered, each
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

// Where an element of a plane's image lies.
struct Place {
  std::int64_t plane;
  int row, column;
};
__device__ Place place(std::int64_t i, const int (&size)[2]) {
  return {i / (size[0] * size[1]), static_cast<int>(i / size[1] % size[0]), static_cast<int>(i % size[1])};
}

__global__ void max_windows(const float* x, float* y, Pooling p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.out);
    const float* const plane = x + at.plane * p.in[0] * p.in[1];
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    float highest = plane[rows.begin * p.in[1] + columns.begin];
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const float value = plane[row * p.in[1] + column];
        if (value > highest || value != value) highest = value;  // NaN stays
      }
    y[i] = highest;
  }
}

// Whether no element of the window before (row, column) is its maximum too.
__device__ bool first_maximum(const Pooling& p, const float* plane, float highest, Span rows, Span columns,
                              int row, int column) {
  for (int r = rows.begin; r <= row; ++r)
    for (int c = columns.begin; c < columns.end; ++c) {
      if (r == row && c == column) return true;
      if (plane[r * p.in[1] + c] == highest) return false;
    }
  return true;
}

__global__ void max_grad_elements(const float* x, const float* y, const float* dy, float* dx, Pooling p,
                                  std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.in);
    const float* const plane = x + at.plane * p.in[0] * p.in[1];
    const Span rows = windows(p, 0, at.row), columns = windows(p, 1, at.column);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const std::int64_t window = (at.plane * p.out[0] + row) * p.out[1] + column;
        if (x[i] != y[window]) continue;
        if (first_maximum(p, plane, y[window], span(p, 0, row), span(p, 1, column), at.row, at.column))
          sum += dy[window];
      }
    dx[i] = sum;
  }
}

__global__ void average_windows(const float* x, float* y, Pooling p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.out);
    const float* const plane = x + at.plane * p.in[0] * p.in[1];
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) sum += plane[row * p.in[1] + column];
    y[i] = sum * share(p, rows, columns);
  }
}

__global__ void average_grad_elements(const float* dy, float* dx, Pooling p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.in);
    const Span rows = windows(p, 0, at.row), columns = windows(p, 1, at.column);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column)
        sum += dy[(at.plane * p.out[0] + row) * p.out[1] + column] *
               share(p, span(p, 0, row), span(p, 1, column));
    dx[i] = sum;
  }
}

__global__ void frame_elements(const float* x, float* framed, Frame f, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, f.out);
    const int row = at.row - f.before[0], column = at.column - f.before[1];
    const bool inside = row >= 0 && row < f.in[0] && column >= 0 && column < f.in[1];
    framed[i] = inside ? x[(at.plane * f.in[0] + row) * f.in[1] + column] : 0.0F;
  }
}

__global__ void inner_elements(const float* framed, float* x, Frame f, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, f.in);
    x[i] = framed[(at.plane * f.out[0] + at.row + f.before[0]) * f.out[1] + at.column + f.before[1]];
  }
}

__global__ void move_channels(Statistics s, double epsilon, float keep, float take, int channels) {
  FLEETRUN_EACH(c, channels) {
    const auto inverse = static_cast<double>(s.inverse[c]);
    const auto variance = static_cast<float>(fmax(1.0 / (inverse * inverse) - epsilon, 0.0));
    s.batch_variance[c] = variance;
    s.mean[c] = s.mean[c] * keep + s.batch_mean[c] * take;
    s.variance[c] = s.variance[c] * keep + variance * take;
  }
}

__global__ void invert_channels(const float* variance, float* inverse, double epsilon, int channels) {
  FLEETRUN_EACH(c, channels)
  inverse[c] = static_cast<float>(1.0 / sqrt(static_cast<double>(variance[c]) + epsilon));
}

std::int64_t elements(int planes, const int (&size)[2]) { return std::int64_t{planes} * size[0] * size[1]; }

}  // namespace

void max_pool(const float* x, float* y, const Pooling& p, cudaStream_t stream) {
  const std::int64_t count = elements(p.planes, p.out);
  max_windows<<<blocks_for(count), kThreads, 0, stream>>>(x, y, p, count);
}

void max_pool_grad(const float* x, const float* y, const float* dy, float* dx, const Pooling& p,
                   cudaStream_t stream) {
  const std::int64_t count = elements(p.planes, p.in);
  max_grad_elements<<<blocks_for(count), kThreads, 0, stream>>>(x, y, dy, dx, p, count);
}

void average_pool(const float* x, float* y, const Pooling& p, cudaStream_t stream) {
  const std::int64_t count = elements(p.planes, p.out);
  average_windows<<<blocks_for(count), kThreads, 0, stream>>>(x, y, p, count);
}

void average_pool_grad(const float* dy, float* dx, const Pooling& p, cudaStream_t stream) {
  const std::int64_t count = elements(p.planes, p.in);
  average_grad_elements<<<blocks_for(count), kThreads, 0, stream>>>(dy, dx, p, count);
}

void put_into_frame(const float* x, float* framed, const Frame& f, cudaStream_t stream) {
  const std::int64_t count = elements(f.planes, f.out);
  frame_elements<<<blocks_for(count), kThreads, 0, stream>>>(x, framed, f, count);
}

void take_from_frame(const float* framed, float* x, const Frame& f, cudaStream_t stream) {
  const std::int64_t count = elements(f.planes, f.in);
  inner_elements<<<blocks_for(count), kThreads, 0, stream>>>(framed, x, f, count);
}

void move_statistics(const Statistics& s, double epsilon, float keep, float take, int channels,
                     cudaStream_t stream) {
  move_channels<<<blocks_for(channels), kThreads, 0, stream>>>(s, epsilon, keep, take, channels);
}

void inverse_deviation(const float* variance, float* inverse, double epsilon, int channels,
                       cudaStream_t stream) {
  invert_channels<<<blocks_for(channels), kThreads, 0, stream>>>(variance, inverse, epsilon, channels);
}

}  // namespace fleetrun::cuda
