// Kernels on images: pooling, frames of zeros, turning to channels last and back. Gradients are gathered, each element of
// dx by one thread, so that their sums have one order.
#include <limits>

#include "cuda/plugin/divisor.cuh"
#include "cuda/plugin/grid.cuh"
#include "cuda/plugin/launch.h"
#include "cuda/plugin/number.cuh"

namespace fleetrun::cuda {
namespace {

// How packs of elements lie in an image.
struct Packs {
  Divisor per_pixel, columns, rows;

  Packs(int lanes, int per_pack, const int (&size)[2])
      : per_pixel(lanes / per_pack), columns(size[1]), rows(size[0]) {}
};

// With what a kernel divides by whose threads take packs of x or y.
struct Pool : Pooling {
  Packs packs;
  Divisor by_stride[2];

  Pool(const Pooling& pooling, int per_pack, const int (&size)[2])
      : Pooling(pooling), packs(lanes, per_pack, size), by_stride{Divisor(strides[0]), Divisor(strides[1])} {}
};

struct Span {
  int begin, end;
};

// The elements of x that window `index` sees along an axis.
__device__ Span span(const Pooling& p, int axis, int index) {
  const int first = index * p.strides[axis] - p.before[axis];
  return {max(first, 0), min(first + p.kernel[axis], p.in[axis])};
}

// The windows along an axis that see the element `at` of x.
__device__ Span windows(const Pool& p, int axis, int at) {
  const auto divided = [&](int number) {
    return static_cast<int>(p.by_stride[axis].divide(static_cast<std::uint32_t>(number)).quotient);
  };
  const int from = at + p.before[axis] - p.kernel[axis] + 1;
  const int first = from > 0 ? divided(from + p.strides[axis] - 1) : 0;
  return {first, min(divided(at + p.before[axis]) + 1, p.out[axis])};
}

__device__ float share(const Pooling& p, Span rows, Span columns) {
  const int count =
      p.exclusive ? (rows.end - rows.begin) * (columns.end - columns.begin) : p.kernel[0] * p.kernel[1];
  return 1.0F / static_cast<float>(count);
}

// Where a pack of N elements lies: the one that begins with element `lane` of those side by side at a pixel.
struct Place {
  std::int64_t plane;
  int row, column, lane;
};
// Sizes fit into 32 bits: see narrow() of simple_kernel.h.
__device__ Place place(std::int64_t pack, const Packs& packs, int per_pack) {
  const auto [pixel, beside] = packs.per_pixel.divide(static_cast<std::uint32_t>(pack));
  const auto [line, column] = packs.columns.divide(pixel);
  const auto [plane, row] = packs.rows.divide(line);
  return {plane, static_cast<int>(row), static_cast<int>(column), static_cast<int>(beside) * per_pack};
}

__device__ std::int64_t offset(const Place& at, int row, int column, const int (&size)[2], int lanes) {
  return ((at.plane * size[0] + row) * size[1] + column) * lanes + at.lane;
}

// b bytes read per element of x and b written per element of y. Predicted share of the memory bandwidth: 0.5 with packs
// and 0.4 without, because windows overlap and read each element of x several times, mostly from the cache.
template <typename T, int N>
__global__ void max_windows(const T* x, T* y, Pool p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.packs, N);
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    auto highest = Pack<T, N>::read(x + offset(at, rows.begin, columns.begin, p.in, p.lanes));
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const auto values = Pack<T, N>::read(x + offset(at, row, column, p.in, p.lanes));
#pragma unroll
        for (int e = 0; e < N; ++e) {
          const float value = values[e];
          if (value > highest[e] || value != value) highest.set(e, value);  // NaN stays
        }
      }
    highest.write(y + i * N);
  }
}

// For each of N windows side by side: which of its elements, in the order of rows, is its first maximum.
template <typename Index, int N>
struct alignas(sizeof(Index) * N <= kPackBytes ? sizeof(Index) * N : kPackBytes) Maxima {
  static constexpr Index kNone = std::numeric_limits<Index>::max();  // NaN, which nothing equals
  Index index[N];
};

// b bytes read per element of x and the size of an Index (1 or 4) written per window.
// Predicted share of the memory bandwidth: 0.5 with packs and 0.35 without, for the same reason as in max_windows.
template <typename T, typename Index, int N>
__global__ void find_maxima(const T* x, Maxima<Index, N>* maxima, Pool p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.packs, N);
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    const int top = at.row * p.strides[0] - p.before[0], left = at.column * p.strides[1] - p.before[1];
    float highest[N] = {};
    Maxima<Index, N> found;
#pragma unroll
    for (int e = 0; e < N; ++e) found.index[e] = Maxima<Index, N>::kNone;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const bool first = row == rows.begin && column == columns.begin;
        const auto index = static_cast<Index>((row - top) * p.kernel[1] + column - left);
        const auto values = Pack<T, N>::read(x + offset(at, row, column, p.in, p.lanes));
#pragma unroll
        for (int e = 0; e < N; ++e) {
          const float value = values[e];
          if (!first && !(value > highest[e]) && value == value) continue;
          highest[e] = value;
          found.index[e] = index;
        }
      }
#pragma unroll
    for (int e = 0; e < N; ++e)
      if (highest[e] != highest[e]) found.index[e] = Maxima<Index, N>::kNone;
    maxima[i] = found;
  }
}

// dx: each element sums the gradients of the windows whose maximum it is. b bytes and an Index read per window, and
// b bytes written per element of x. Predicted share of the memory bandwidth: 0.3 with packs and 0.15 without, because
// each element of x looks at all windows that see it, one after the other.
template <typename T, typename Index, int N>
__global__ void max_grad_elements(const Maxima<Index, N>* maxima, const T* dy, T* dx, Pool p,
                                  std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.packs, N);
    const Span rows = windows(p, 0, at.row), columns = windows(p, 1, at.column);
    float sums[N] = {};
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const std::int64_t window = offset(at, row, column, p.out, p.lanes);
        const int below = at.row + p.before[0] - row * p.strides[0];
        const int across = at.column + p.before[1] - column * p.strides[1];
        const auto mine = static_cast<Index>(below * p.kernel[1] + across);
        const Maxima<Index, N> found = maxima[window / N];
        const auto gradient = Pack<T, N>::read(dy + window);
#pragma unroll
        for (int e = 0; e < N; ++e) sums[e] += found.index[e] == mine ? gradient[e] : 0.0F;
      }
    Pack<T, N> made;
#pragma unroll
    for (int e = 0; e < N; ++e) made.set(e, sums[e]);
    made.write(dx + i * N);
  }
}

// b bytes read per element of x and b written per element of y. Predicted share of the memory bandwidth: 0.5 with packs;
// 0.2 without, because a thread then reads a whole window element by element.
template <typename T, int N>
__global__ void average_windows(const T* x, T* y, Pool p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.packs, N);
    const Span rows = span(p, 0, at.row), columns = span(p, 1, at.column);
    float sums[N] = {};
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const auto values = Pack<T, N>::read(x + offset(at, row, column, p.in, p.lanes));
#pragma unroll
        for (int e = 0; e < N; ++e) sums[e] += values[e];
      }
    const float part = share(p, rows, columns);
    Pack<T, N> made;
#pragma unroll
    for (int e = 0; e < N; ++e) made.set(e, sums[e] * part);
    made.write(y + i * N);
  }
}

// b bytes read per element of dy and b written per element of dx. Predicted share of the memory bandwidth: 0.5 with packs
// and 0.3 without, because each element divides by the sizes of its windows.
template <typename T, int N>
__global__ void average_grad_elements(const T* dy, T* dx, Pool p, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, p.packs, N);
    const Span rows = windows(p, 0, at.row), columns = windows(p, 1, at.column);
    float sums[N] = {};
    for (int row = rows.begin; row < rows.end; ++row)
      for (int column = columns.begin; column < columns.end; ++column) {
        const float part = share(p, span(p, 0, row), span(p, 1, column));
        const auto gradient = Pack<T, N>::read(dy + offset(at, row, column, p.out, p.lanes));
#pragma unroll
        for (int e = 0; e < N; ++e) sums[e] += gradient[e] * part;
      }
    Pack<T, N> made;
#pragma unroll
    for (int e = 0; e < N; ++e) made.set(e, sums[e]);
    made.write(dx + i * N);
  }
}

// b bytes read per element of x and b written per element of the frame. Predicted share of the memory bandwidth: 0.6,
// because a thread reads the elements of its pack one by one; 0.35 for single elements of 2 bytes.
template <typename T, int N>
__global__ void frame_elements(const T* x, SideBySide<T, N>* framed, Frame f, Packs packs,
                               std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, packs, N);
    const int row = at.row - f.before[0], column = at.column - f.before[1];
    const bool inside = row >= 0 && row < f.in[0] && column >= 0 && column < f.in[1];
    const T* const from = x + offset(at, row, column, f.in, f.lanes_in);
    SideBySide<T, N> made;
#pragma unroll
    for (int e = 0; e < N; ++e) made.of[e] = inside && at.lane + e < f.lanes_in ? from[e] : T{};
    framed[i] = made;
  }
}

// b bytes read and b written per element of x. Predicted share of the memory bandwidth: 0.6 for elements of 4 bytes and
// 0.35 for those of 2, because a thread moves one element at a time.
template <typename T>
__global__ void inner_elements(const T* framed, T* x, Frame f, Packs packs, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const Place at = place(i, packs, 1);
    x[i] = framed[offset(at, at.row + f.before[0], at.column + f.before[1], f.out, f.lanes_out)];
  }
}

// b bytes read and b written per element. Predicted share of the memory bandwidth: 0.35 for elements of 4 bytes and 0.2
// for those of 2: threads beside each other read elements that are far apart, and each element needs divisions of 64-bit
// numbers.
template <typename T>
__global__ void turn_elements(const T* x, T* y, Turn sizes, std::int64_t count) {
  FLEETRUN_EACH(i, count) {
    const std::int64_t row = i % sizes.rows, column = i / sizes.rows % sizes.columns;
    const std::int64_t image = i / sizes.rows / sizes.columns;
    y[i] = x[(image * sizes.rows + row) * sizes.columns + column];
  }
}

std::int64_t elements(std::int64_t planes, int lanes, const int (&size)[2]) {
  return planes * lanes * size[0] * size[1];
}
std::int64_t elements(const Pooling& p, const int (&size)[2]) { return elements(p.planes, p.lanes, size); }

// Whether a byte says which element of a window it is, and that it is none.
bool has_small_windows(const Pooling& p) {
  return p.kernel[0] * p.kernel[1] <= std::numeric_limits<std::uint8_t>::max();
}

// Calls body.operator()<T, N>() with the elements that a thread takes at once.
template <typename Body>
void for_lanes(Number type, int lanes, const Body& body) {
  for_type(type, [&]<typename T>() {
    if (lanes % kPack<T> == 0) return body.template operator()<T, kPack<T>>();
    body.template operator()<T, 1>();
  });
}

template <typename T, int N>
void start_frame(const void* x, void* framed, const Frame& f, cudaStream_t stream) {
  start_elements(frame_elements<T, N>, elements(f.planes, f.lanes_out, f.out) / N, stream,
                 static_cast<const T*>(x), static_cast<SideBySide<T, N>*>(framed), f,
                 Packs(f.lanes_out, N, f.out));
}

}  // namespace

void max_pool(Number type, const void* x, void* y, const Pooling& p, cudaStream_t stream) {
  for_lanes(type, p.lanes, [&]<typename T, int N>() {
    start_elements(max_windows<T, N>, elements(p, p.out) / N, stream, static_cast<const T*>(x),
                   static_cast<T*>(y), Pool(p, N, p.out));
  });
}

std::size_t max_pool_grad_scratch(const Pooling& p) {
  const auto windows = static_cast<std::size_t>(elements(p, p.out));
  return windows * (has_small_windows(p) ? sizeof(std::uint8_t) : sizeof(std::uint32_t));
}

void max_pool_grad(Number type, const void* x, const void* dy, void* dx, void* scratch, const Pooling& p,
                   cudaStream_t stream) {
  for_lanes(type, p.lanes, [&]<typename T, int N>() {
    const auto run = [&]<typename Index>(Maxima<Index, N>* maxima) {
      start_elements(find_maxima<T, Index, N>, elements(p, p.out) / N, stream, static_cast<const T*>(x),
                     maxima, Pool(p, N, p.out));
      start_elements(max_grad_elements<T, Index, N>, elements(p, p.in) / N, stream,
                     static_cast<const Maxima<Index, N>*>(maxima), static_cast<const T*>(dy),
                     static_cast<T*>(dx), Pool(p, N, p.in));
    };
    if (has_small_windows(p)) return run(static_cast<Maxima<std::uint8_t, N>*>(scratch));
    run(static_cast<Maxima<std::uint32_t, N>*>(scratch));
  });
}

void average_pool(Number type, const void* x, void* y, const Pooling& p, cudaStream_t stream) {
  for_lanes(type, p.lanes, [&]<typename T, int N>() {
    start_elements(average_windows<T, N>, elements(p, p.out) / N, stream, static_cast<const T*>(x),
                   static_cast<T*>(y), Pool(p, N, p.out));
  });
}

void average_pool_grad(Number type, const void* dy, void* dx, const Pooling& p, cudaStream_t stream) {
  for_lanes(type, p.lanes, [&]<typename T, int N>() {
    start_elements(average_grad_elements<T, N>, elements(p, p.in) / N, stream, static_cast<const T*>(dy),
                   static_cast<T*>(dx), Pool(p, N, p.in));
  });
}

void put_into_frame(int bytes, const void* x, void* framed, const Frame& f, cudaStream_t stream) {
  constexpr int kFew = 4;
  for_bytes(bytes, [&]<typename T>() {
    if (f.lanes_out % kPack<T> == 0) return start_frame<T, kPack<T>>(x, framed, f, stream);
    if (f.lanes_out % kFew == 0) return start_frame<T, kFew>(x, framed, f, stream);
    start_frame<T, 1>(x, framed, f, stream);
  });
}

void take_from_frame(int bytes, const void* framed, void* x, const Frame& f, cudaStream_t stream) {
  for_bytes(bytes, [&]<typename T>() {
    start_elements(inner_elements<T>, elements(f.planes, f.lanes_in, f.in), stream,
                   static_cast<const T*>(framed), static_cast<T*>(x), f, Packs(f.lanes_in, 1, f.in));
  });
}

void turn(int bytes, const void* x, void* y, const Turn& sizes, cudaStream_t stream) {
  for_bytes(bytes, [&]<typename T>() {
    start_elements(turn_elements<T>, sizes.images * sizes.rows * sizes.columns, stream,
                   static_cast<const T*>(x), static_cast<T*>(y), sizes);
  });
}

}  // namespace fleetrun::cuda
