// The window that a convolution or pooling moves over the rows and columns of an image.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Each pair is (rows, columns).
struct Window {
  std::array<std::int64_t, 2> kernel{};
  std::array<std::int64_t, 2> strides{1, 1};
  std::array<std::int64_t, 2> before{};  // padding above, on the left
  std::array<std::int64_t, 2> after{};   // padding below, on the right
  std::array<std::int64_t, 2> dilations{1, 1};

  std::int64_t reach(std::size_t axis) const { return dilations[axis] * (kernel[axis] - 1) + 1; }
};

// From the attributes strides [2], paddings [2] (rows, columns) or [4] (top, bottom, left, right) and,
// where the op has them, dilations [2]. Throws Error(config) when one is not as it must be.
Window read_window(const OpView& op, std::int64_t kernel_rows, std::int64_t kernel_columns);

// [N, channels, rows, columns] of what the window makes of `image` [N, C, rows, columns].
// Throws Error(config) when the window is larger than the padded image.
Shape moved_over(const OpView& op, const Window& window, const Shape& image, std::int64_t channels);

}  // namespace fleetrun::runtime::ops
