// Row by row, as the definition says it. On the CPU the threads of the loader normalise images; this kernel serves
// tests, and is what other devices are compared with.
#include <vector>

#include "base/number/half.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

struct PixelSizes {
  std::int64_t channels, rows, columns;
};

// view[n] of the op's definition.
struct PixelView {
  std::int32_t top, left, mirrored, present;
};

// Of one channel.
struct PixelScale {
  float mean, scale;
};

std::vector<PixelScale> scales_of(const OpView& op) {
  const std::vector<double>&mean = op.numbers("mean"), &scale = op.numbers("scale");
  std::vector<PixelScale> scales;
  for (std::size_t c = 0; c < mean.size(); ++c)
    scales.push_back({static_cast<float>(mean[c]), static_cast<float>(scale[c])});
  return scales;
}

void put_number(DType dtype, void* y, std::int64_t at, float number) {
  if (dtype == DType::f32)
    static_cast<float*>(y)[at] = number;
  else
    static_cast<std::uint16_t*>(y)[at] = dtype == DType::f16 ? f32_to_f16(number) : f32_to_bf16(number);
}

// The memory of one run.
struct PixelArrays {
  const std::uint8_t* x;
  const PixelView* views;
  void* y;
  DType dtype;  // of y
};

// `line` counts the rows of all channels of all images.
void normalise_line(std::int64_t line, const PixelArrays& arrays, const PixelSizes& sizes,
                    const std::vector<PixelScale>& scales) {
  const std::int64_t plane = line / sizes.rows;
  const PixelView view = arrays.views[plane / sizes.channels];
  const PixelScale& scale = scales[static_cast<std::size_t>(plane % sizes.channels)];
  const std::int64_t row = line % sizes.rows + view.top;
  const std::int64_t source = (plane * sizes.rows + row) * sizes.columns;  // the place of the row in x
  for (std::int64_t j = 0; j < sizes.columns; ++j) {
    const std::int64_t column = (view.mirrored != 0 ? sizes.columns - 1 - j : j) + view.left;
    const bool inside = row >= 0 && row < sizes.rows && column >= 0 && column < sizes.columns;
    const float pixel = inside ? static_cast<float>(arrays.x[source + column]) : 0.0F;
    put_number(arrays.dtype, arrays.y, line * sizes.columns + j,
               view.present != 0 ? (pixel - scale.mean) * scale.scale : 0.0F);
  }
}

std::unique_ptr<Kernel> make_crop_mirror_normalize(const OpView& op, Device&) {
  const Value& images = op.input("x");
  const PixelSizes sizes = {images.shape[1], images.shape[2], images.shape[3]};
  const std::int64_t lines = images.shape[0] * sizes.channels * sizes.rows;
  return simple_kernel([sizes, lines, scales = scales_of(op), dtype = op.output("y").dtype,
                        x = op.input_id("x"), view = op.input_id("view"),
                        y = op.output_id("y")](const RunContext& context) {
    const PixelArrays arrays = {at<std::uint8_t>(context, x), at<PixelView>(context, view), context.data[y],
                                dtype};
    parallel_for(lines, std::max<std::int64_t>(1, kElementsPerThread / sizes.columns),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t line = begin; line < end; ++line)
                     normalise_line(line, arrays, sizes, scales);
                 });
  });
}

}  // namespace

KernelDef crop_mirror_normalize_kernel() { return {.make = make_crop_mirror_normalize}; }

}  // namespace fleetrun::runtime::cpu
