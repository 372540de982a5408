#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

PixelImages pixel_images_of(const OpView& op) {
  const Value &x = op.input("x"), &y = op.output("y");
  narrow(op, runtime::count_of(x.shape));
  if (x.shape[1] > kMostPixelChannels)
    op.fail(fmt::format("x has {} channels, CUDA takes at most {}", x.shape[1], kMostPixelChannels));
  return {.count = narrow(op, x.shape[0]),
          .channels = narrow(op, x.shape[1]),
          .rows = narrow(op, x.shape[2]),
          .columns = narrow(op, x.shape[3]),
          .channels_last = is_channels_last(y.layout)};
}

PixelScales pixel_scales_of(const OpView& op) {
  const std::vector<double>&mean = op.numbers("mean"), &scale = op.numbers("scale");
  PixelScales scales{};
  for (std::size_t c = 0; c < mean.size(); ++c) {
    scales.mean[c] = static_cast<float>(mean[c]);
    scales.scale[c] = static_cast<float>(scale[c]);
  }
  return scales;
}

std::unique_ptr<Kernel> make_crop_mirror_normalize(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [type = number_of(op, op.output("y")), images = pixel_images_of(op),
                        scales = pixel_scales_of(op), x = op.input_id("x"), view = op.input_id("view"),
                        y = op.output_id("y")](const RunContext& context, cudaStream_t stream) {
                         crop_mirror_normalize(type, at<std::uint8_t>(context, x),
                                               at<ImageView>(context, view), context.data[y], images, scales,
                                               stream);
                       });
}

}  // namespace

KernelDef crop_mirror_normalize_kernel() {
  return {.choose_layouts = outputs_as_the_job_says, .make = make_crop_mirror_normalize};
}

}  // namespace fleetrun::cuda
