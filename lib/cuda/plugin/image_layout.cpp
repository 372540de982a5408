#include "cuda/plugin/image_layout.h"

#include "cuda/plugin/cuda_device.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::cuda {
namespace {

using runtime::Layout;
using runtime::LayoutChoice;
using runtime::LayoutQuery;
using runtime::Value;
using runtime::ValueId;

constexpr std::size_t kImageSizes = 4;

Layout last(const Value& value) {
  const auto bytes = static_cast<std::size_t>(runtime::count_of(value.shape)) * size_of(value.dtype);
  return {.name = "nhwc", .descriptor = "nhwc", .bytes = bytes};
}

std::vector<Layout> layouts(const LayoutQuery& query, const std::vector<ValueId>& ids, bool channels_last) {
  std::vector<Layout> layouts(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!channels_last || ids[i] == runtime::kNone) continue;
    const Value& value = query.op.program().value(ids[i]);
    if (value.shape.size() == kImageSizes) layouts[i] = last(value);
  }
  return layouts;
}

LayoutChoice choice(const LayoutQuery& query, bool channels_last) {
  const runtime::Op& op = query.op.op();
  return {layouts(query, op.inputs, channels_last), layouts(query, op.outputs, channels_last)};
}

}  // namespace

bool is_channels_last(const Layout& layout) { return !layout.plain(); }

Layout layout_in(const Value& value, DType dtype) {
  Layout layout = value.layout;
  layout.bytes = layout.bytes / size_of(value.dtype) * size_of(dtype);
  return layout;
}

Pixels pixels_of(const runtime::Shape& shape) {
  return {shape.at(0), shape.at(1), shape.at(2) * shape.at(3)};
}

Channels channels_of(const Value& image) {
  const auto [images, channels, pixels] = pixels_of(image.shape);
  if (is_channels_last(image.layout)) return {images * pixels, channels, 1};
  return {images, channels, pixels};
}

LayoutChoice as_the_job_says(const LayoutQuery& query, runtime::Device& device) {
  return choice(query, as_cuda(device).options().channels_last);
}

LayoutChoice outputs_as_the_job_says(const LayoutQuery& query, runtime::Device& device) {
  LayoutChoice choice = as_the_job_says(query, device);
  choice.inputs.assign(choice.inputs.size(), {});
  return choice;
}

LayoutChoice images_like(const LayoutQuery& query, std::string_view leader) {
  return choice(query, is_channels_last(query.op.input(leader).layout));
}

LayoutChoice images_like_x(const LayoutQuery& query, runtime::Device&) { return images_like(query, "x"); }

LayoutChoice like_one_that_is_not_plain(const LayoutQuery& query, runtime::Device&) {
  const std::vector<ValueId>& inputs = query.op.op().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != runtime::kNone && !query.op.program().value(inputs[i]).layout.plain())
      return runtime::like_input(query, query.op.def().input_name(i));
  return runtime::like_input(query, query.op.def().input_name(0));
}

}  // namespace fleetrun::cuda
