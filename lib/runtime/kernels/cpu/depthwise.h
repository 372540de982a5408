// What the kernels of depthwise convolutions share: the geometry of image and window, the rows that are buffered, and the
// memory of a thread.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/kernels/cpu/loops/channel_blocks.h"
#include "runtime/kernels/cpu/loops/depthwise_rows.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::cpu {

// Where a window sees which row or column of the input, along one axis.
struct DepthwiseAxis {
  std::int64_t in = 0, out = 0;  // sizes
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0;

  DepthwiseAxis(const ops::Window& window, std::size_t axis, const Shape& x, const Shape& y)
      : in(x[axis + 2]),
        out(y[axis + 2]),
        kernel(window.kernel[axis]),
        stride(window.strides[axis]),
        dilation(window.dilations[axis]),
        before(window.before[axis]) {}
  std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
};

// Image, window and result of the op.
struct Depthwise {
  std::int64_t images, channels, together;  // together: channels that lie side by side
  DepthwiseAxis rows, columns;

  Depthwise(const OpView& op, const Value& x, const Shape& y, const Shape& w)
      : Depthwise(x, y, ops::read_window(op, w[2], w[3])) {
    elements_of(op, x);
  }

  std::int64_t blocks() const { return (channels + together - 1) / together; }  // of an image
  std::int64_t planes() const { return images * blocks(); }
  std::int64_t in_plane() const { return rows.in * columns.in * together; }  // floats
  std::int64_t out_plane() const { return rows.out * columns.out * together; }
  int taps() const { return static_cast<int>(rows.kernel * columns.kernel); }
  const float* weight(const float* w, std::int64_t plane, std::int64_t row, std::int64_t column) const {
    return w + ((plane % blocks() * rows.kernel + row) * columns.kernel + column) * together;
  }

 private:
  Depthwise(const Value& x, const Shape& y, const ops::Window& window)
      : images(x.shape[0]),
        channels(x.shape[1]),
        together(channel_blocks(x)->inner),
        rows(window, 0, x.shape, y),
        columns(window, 1, x.shape, y) {}
};

// The last rows that were read of a plane, with zeros around their columns.
class DepthwiseRows {
 public:
  struct Size {
    std::int64_t slots = 1;                           // rows that are needed at once
    std::int64_t before = 0, columns = 0, width = 0;  // pixels: zeros in front; of the plane; all
    std::int64_t together = 1;

    std::int64_t floats() const { return slots * width * together; }
  };

  DepthwiseRows(const Size& size, bool rectify, float* memory)
      : size_(size), rectify_(rectify), data_(memory) {
    std::fill_n(data_, size.floats(), 0.0F);
  }

  void begin(const float* plane) {
    plane_ = plane;
    next_ = 0;
  }
  // Rows before this one are no longer asked for.
  void skip_to(std::int64_t row) { next_ = std::max(next_, row); }

  const float* row(std::int64_t row) {
    for (; next_ <= row; ++next_) read(next_);
    return slot(row);
  }

 private:
  float* slot(std::int64_t row) const { return data_ + row % size_.slots * size_.width * size_.together; }
  void read(std::int64_t row) const {
    const std::int64_t floats = size_.columns * size_.together;
    const float* const from = plane_ + row * floats;
    float* const to = slot(row) + size_.before * size_.together;
    copy_pixels(static_cast<int>(size_.together), from, to, floats, rectify_);
  }

  Size size_;
  bool rectify_;
  float* data_;
  const float* plane_ = nullptr;
  std::int64_t next_ = 0;  // the first row that was not read yet
};

// What each thread has to itself in scratch memory: buffered rows, and pointers to taps and to their weights.
struct DepthwiseMemory {
  std::int64_t floats;  // of rows
  int taps;

  std::size_t bytes() const {
    constexpr std::size_t kLine = 64;
    const std::size_t all = static_cast<std::size_t>(floats) * sizeof(float) +
                            2 * static_cast<std::size_t>(taps) * sizeof(float*);
    return (all + kLine - 1) / kLine * kLine;
  }
  std::size_t bytes_of_team() const { return bytes() * static_cast<std::size_t>(omp_get_max_threads()); }
  float* rows(void* scratch) const {
    auto* const own =
        static_cast<std::byte*>(scratch) + bytes() * static_cast<std::size_t>(omp_get_thread_num());
    return reinterpret_cast<float*>(own);
  }
  const float** pointers(void* scratch) const {
    return reinterpret_cast<const float**>(rows(scratch) + floats);
  }
};

}  // namespace fleetrun::runtime::cpu
