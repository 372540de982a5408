#include "runtime/kernels/cpu/patches.h"

#include <dnnl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "runtime/kernels/cpu/onednn/inner_product.h"
#include "runtime/kernels/cpu/threads/parallel_for.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::size_t kMostPatches = 32 << 20;  // bytes: what is gathered takes memory beside the activations
constexpr std::size_t kPatchAlignment = 64;
constexpr std::int64_t kLargestBlock = 64;  // of channels, in oneDNN's layouts of weights

Descriptor tagged(std::initializer_list<std::int64_t> dims, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  Descriptor descriptor;
  check(dnnl_memory_desc_init_by_tag(&descriptor, static_cast<int>(dims.size()), dims.begin(), type, tag),
        "describing patches");
  return descriptor;
}

bool is_any(const Descriptor& descriptor) { return descriptor.format_kind == dnnl_format_kind_any; }

bool channels_are_last(const Descriptor& image) {
  const dnnl_dims_t& dims = image.dims;
  const Descriptor last = tagged({dims[0], dims[1], dims[2], dims[3]}, image.data_type, dnnl_nhwc);
  return is_any(image) || dnnl_memory_desc_equal(&image, &last) != 0;
}

// The image is the matrix of its patches.
bool are_pixels(const ops::Window& window) {
  return apart(window) && window.strides[0] == 1 && window.strides[1] == 1;
}

std::int64_t block_of_channels(const Descriptor& weight) {
  const dnnl_blocking_desc_t& blocks = weight.format_desc.blocking;
  std::int64_t block = 1;
  for (int i = 0; i < blocks.inner_nblks; ++i)
    if (blocks.inner_idxs[i] == 1) block *= blocks.inner_blks[i];
  return block;
}

// Whole blocks of channels side by side within a tap, taps of a row side by side, rows side by side.
bool tap_by_tap(const Descriptor& weight, const Shape& shape) {
  const std::int64_t block = block_of_channels(weight), taps = shape[2] * shape[3];
  const auto& strides = weight.format_desc.blocking.strides;
  if (taps == 1) return true;
  const std::int64_t tap = shape[1] / block * strides[1];
  return shape[1] % block == 0 && strides[3] == tap && strides[2] == tap * shape[3];
}

std::optional<Descriptor> matrix_of_weight(const Descriptor& weight, const Shape& shape) {
  const std::int64_t columns = shape[1] * shape[2] * shape[3];
  if (is_any(weight)) return tagged({shape[0], columns}, weight.data_type, dnnl_format_tag_any);
  if (!tap_by_tap(weight, shape)) return {};
  Descriptor matrix = weight;
  matrix.ndims = 2;
  matrix.dims[1] = columns;
  matrix.padded_dims[1] = weight.padded_dims[1] * shape[2] * shape[3];
  return matrix;
}

// Calls body(row of patches' begin, image, result row) for all of them.
template <typename Body>
void each_result_row(const PatchGeometry& at, const Body& body) {
  const std::int64_t grain =
      kElementsPerThread / std::max<std::int64_t>(at.result_columns * at.taps() * at.channels, 1);
  parallel_for(at.images * at.result_rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      body(static_cast<std::size_t>(i * at.result_columns * at.taps()) * at.pixel(), i / at.result_rows,
           i % at.result_rows);
  });
}

void gather(const PatchGeometry& at, const std::byte* image, std::byte* patches) {
  const std::size_t pixel = at.pixel();
  each_result_row(at, [&](std::size_t begin, std::int64_t n, std::int64_t result_row) {
    std::byte* to = patches + begin;
    for (std::int64_t result_column = 0; result_column < at.result_columns; ++result_column)
      for (std::int64_t i = 0; i < at.window.kernel[0]; ++i) {
        const std::int64_t row = result_row * at.window.strides[0] - at.window.before[0] + i;
        const std::int64_t first = result_column * at.window.strides[1] - at.window.before[1];
        for (std::int64_t column = first; column < first + at.window.kernel[1]; ++column, to += pixel)
          if (row < 0 || row >= at.rows || column < 0 || column >= at.columns)
            std::memset(to, 0, pixel);
          else
            std::memcpy(to,
                        image + static_cast<std::size_t>((n * at.rows + row) * at.columns + column) * pixel,
                        pixel);
      }
  });
}

// Patches of one tap, without padding.
void give_back(const PatchGeometry& at, const std::byte* patches, std::byte* image) {
  const std::size_t pixel = at.pixel();
  const std::int64_t row_stride = at.window.strides[0], column_stride = at.window.strides[1];
  const std::int64_t grain = kElementsPerThread / std::max<std::int64_t>(at.columns * at.channels, 1);
  parallel_for(at.images * at.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::byte* const to = image + static_cast<std::size_t>(i * at.columns) * pixel;
      std::memset(to, 0, static_cast<std::size_t>(at.columns) * pixel);
      const std::int64_t n = i / at.rows, row = i % at.rows, result_row = row / row_stride;
      if (row % row_stride != 0 || result_row >= at.result_rows) continue;
      const std::int64_t first = (n * at.result_rows + result_row) * at.result_columns;
      for (std::int64_t column = 0; column < at.result_columns; ++column)
        std::memcpy(to + static_cast<std::size_t>(column * column_stride) * pixel,
                    patches + static_cast<std::size_t>(first + column) * pixel, pixel);
    }
  });
}

class ProductOfPatches : public Kernel {
 public:
  ProductOfPatches(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                   std::vector<PrimitiveArgument> arguments, const PatchGeometry& geometry)
      : geometry_(geometry), product_(op, device, desc, numbered(arguments)) {}

  void run(const RunContext& context) override {
    auto* const patches = static_cast<std::byte*>(context.scratch);
    for (std::size_t i = 0; i < values_.size(); ++i) pointers_[i] = context.data[values_[i]];
    auto* const image = static_cast<std::byte*>(std::exchange(pointers_[image_], patches));
    RunContext inner = context;
    inner.data = pointers_.data();
    inner.scratch = patches + patch_bytes();
    if (!backward_) gather(geometry_, image, patches);
    product_.run(inner);
    if (backward_) give_back(geometry_, patches, image);
  }

  std::size_t scratch_bytes() const override { return patch_bytes() + product_.scratch_bytes(); }
  std::string describe() const override { return product_.describe() + " of patches"; }

 private:
  std::size_t patch_bytes() const {
    return (geometry_.bytes() + kPatchAlignment - 1) / kPatchAlignment * kPatchAlignment;
  }

  // The product finds its values by their place in pointers_.
  std::vector<PrimitiveArgument> numbered(std::vector<PrimitiveArgument>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      values_.push_back(std::exchange(arguments[i].value, static_cast<ValueId>(i)));
      if (arguments[i].tag != DNNL_ARG_SRC && arguments[i].tag != DNNL_ARG_DIFF_SRC) continue;
      image_ = i;
      backward_ = arguments[i].tag == DNNL_ARG_DIFF_SRC;
    }
    pointers_.resize(values_.size());
    return arguments;
  }

  const PatchGeometry geometry_;
  std::vector<ValueId> values_;
  std::vector<void*> pointers_;
  std::size_t image_ = 0;  // in both
  bool backward_ = false;
  PrimitiveKernel product_;
};

}  // namespace

std::optional<Way> as_matrices(const ops::Window& window, const Shape& weight, const Way& way) {
  if (weight.size() != 4 || window.dilations[0] != 1 || window.dilations[1] != 1) return {};
  if (weight[2] * weight[3] > 1 && weight[1] % kLargestBlock != 0) return {};  // a block would hold two taps
  if (!channels_are_last(way.x) || !channels_are_last(way.y)) return {};
  const PatchGeometry at(window, way);
  if (at.patches() < kLeastRows) return {};
  if (!are_pixels(window) && at.bytes() > kMostPatches) return {};
  const auto w = matrix_of_weight(way.w, weight);
  if (!w) return {};
  return Way{tagged({at.patches(), at.taps() * at.channels}, way.x.data_type, dnnl_ab), *w,
             tagged({at.patches(), weight[0]}, way.y.data_type, dnnl_ab)};
}

Descriptor weight_of_matrix(const Descriptor& matrix, const Shape& weight) {
  Descriptor found = matrix;
  found.ndims = 4;
  found.dims[1] = weight[1];
  found.padded_dims[1] = matrix.padded_dims[1] / (weight[2] * weight[3]);
  auto& strides = found.format_desc.blocking.strides;
  const bool row_major = found.format_desc.blocking.inner_nblks == 0 && weight[2] * weight[3] == 1;
  strides[3] = row_major ? 1 : found.padded_dims[1] / block_of_channels(matrix) * strides[1];
  strides[2] = strides[3] * weight[3];
  for (const int tap : {2, 3}) {
    found.dims[tap] = found.padded_dims[tap] = weight[static_cast<std::size_t>(tap)];
    found.padded_offsets[tap] = 0;
  }
  return found;
}

PatchGeometry::PatchGeometry(const ops::Window& window_, const Way& way)
    : window(window_),
      images(way.x.dims[0]),
      channels(way.x.dims[1]),
      rows(way.x.dims[2]),
      columns(way.x.dims[3]),
      result_rows(way.y.dims[2]),
      result_columns(way.y.dims[3]),
      element(way.x.data_type == dnnl_f32 ? sizeof(float) : sizeof(std::uint16_t)) {}

bool apart(const ops::Window& window) {
  const std::array<std::int64_t, 2> none = {0, 0}, one = {1, 1};
  return window.kernel == one && window.before == none && window.after == none;
}

std::unique_ptr<Kernel> make_product_of_patches(const OpView& op, CpuDevice& device,
                                                const PrimitiveDesc& desc,
                                                std::vector<PrimitiveArgument> arguments,
                                                const PatchGeometry& geometry) {
  if (are_pixels(geometry.window)) return std::make_unique<PrimitiveKernel>(op, device, desc, arguments);
  return std::make_unique<ProductOfPatches>(op, device, desc, std::move(arguments), geometry);
}

}  // namespace fleetrun::runtime::cpu
