// A convolution as one product of matrices (the algorithm gemm). A patch is what the window sees at one of its places, tap by tap:
// of an image [N, C, H, W] with its channels last the patches are the matrix [N*OH*OW, kh*kw*C] (im2col), the weight [O, C, kh, kw]
// is [O, kh*kw*C], and the result, channels last, [N*OH*OW, O]. With one tap, stride 1 and no padding the image is that matrix
// as it lies; elsewhere patches are gathered in scratch memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/kernels/cpu/onednn/primitive.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::cpu {

// The images of `way`, any or channels last, and its weight, any or in blocks of that order, as these matrices. Empty for other
// layouts, for groups (`weight` has 5 dims then), dilations, taps of other than 64, 128, ... channels, fewer patches
// than kLeastRows, and where the patches would take too much memory.
std::optional<Way> as_matrices(const ops::Window& window, const Shape& weight, const Way& way);

// How the weight lies whose matrix is that: the way back, of blocked ones.
Descriptor weight_of_matrix(const Descriptor& matrix, const Shape& weight);

// Every pixel is in one patch at most, which has one tap: patches can be given back to an image without adding.
bool apart(const ops::Window& window);

// Where the window goes over images with channels last, and the rows of patches that it makes.
struct PatchGeometry {
  ops::Window window;
  std::int64_t images, channels, rows, columns, result_rows, result_columns;
  std::size_t element;  // bytes

  PatchGeometry(const ops::Window& window, const Way& way);

  std::int64_t patches() const { return images * result_rows * result_columns; }
  std::int64_t taps() const { return window.kernel[0] * window.kernel[1]; }
  std::size_t pixel() const { return static_cast<std::size_t>(channels) * element; }  // bytes
  std::size_t bytes() const { return static_cast<std::size_t>(patches() * taps()) * pixel(); }
};

// Runs the primitive on matrices. `arguments`: the primitive's, of which DNNL_ARG_SRC is gathered before and
// DNNL_ARG_DIFF_SRC given back after, pixels that no window sees as 0.
std::unique_ptr<Kernel> make_product_of_patches(const OpView& op, CpuDevice& device,
                                                const PrimitiveDesc& desc,
                                                std::vector<PrimitiveArgument> arguments,
                                                const PatchGeometry& geometry);

}  // namespace fleetrun::runtime::cpu
