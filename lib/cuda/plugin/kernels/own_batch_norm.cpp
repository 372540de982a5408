#include "cuda/plugin/kernels/own_batch_norm.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

// The values of each channel that an op reads; which of them there are depends on the op.
struct ChannelIds {
  ValueId scale, bias, mean, variance;
  float epsilon;

  NormChannels in(const RunContext& context) const {
    return {.scale = at(context, scale),
            .bias = at_or_null(context, bias),
            .mean = at(context, mean),
            .variance = at(context, variance),
            .epsilon = epsilon};
  }
};

ChannelIds channel_ids(const OpView& op, ValueId bias, ValueId mean, ValueId variance) {
  return {op.input_id("scale"), bias, mean, variance, static_cast<float>(op.number("epsilon"))};
}

// y of batch_norm, batch_norm_act and batch_norm_add_act from these statistics.
struct Normalisation {
  NormImages images;
  ValueId x, z, y;
  bool rectified;
  ChannelIds channels;

  Normalisation(const OpView& op, ValueId mean, ValueId variance)
      : images(norm_images_of(op)),
        x(op.input_id("x")),
        z(op.def().name == "batch_norm_add_act" ? op.input_id("z") : runtime::kNone),
        y(op.output_id("y")),
        rectified(op.def().name != "batch_norm"),
        channels(channel_ids(op, op.input_id("bias"), mean, variance)) {}

  void operator()(const RunContext& context, cudaStream_t stream) const {
    normalise(images, context.data[x], at_or_null<void>(context, z), context.data[y], rectified,
              channels.in(context), stream);
  }
};

}  // namespace

NormImages norm_images_of(const OpView& op) {
  const Value& x = op.input("x");
  narrow(op, runtime::count_of(x.shape));
  return {.sizes = channels_of(x), .type = number_of(op, x)};
}

std::unique_ptr<Kernel> make_own_batch_norm(const OpView& op, Device& device) {
  const ValueId mean = op.input_id("mean"), variance = op.input_id("variance");
  if (!op.flag("training")) return simple_kernel(op, device, Normalisation(op, mean, variance));
  const Normalisation of_batch(op, op.output_id("batch_mean"), op.output_id("batch_variance"));
  return scratch_kernel(
      op, device, batch_norm_scratch_bytes(of_batch.images),
      [of_batch, mean, variance, keep = static_cast<float>(op.number("momentum")),
       take = static_cast<float>(1.0 - op.number("momentum"))](const RunContext& context,
                                                               cudaStream_t stream) {
        const NormStatistics statistics = {.batch_mean = at(context, of_batch.channels.mean),
                                           .batch_variance = at(context, of_batch.channels.variance),
                                           .mean = at(context, mean),
                                           .variance = at(context, variance),
                                           .keep = keep,
                                           .take = take};
        norm_statistics(of_batch.images, context.data[of_batch.x], statistics, context.scratch, stream);
        of_batch(context, stream);
      });
}

// The gradient of the same three ops.
std::unique_ptr<Kernel> make_own_batch_norm_grad(const OpView& op, Device& device) {
  const NormImages images = norm_images_of(op);
  const bool adds = op.def().name == "batch_norm_add_act_grad";
  const bool rectified = op.def().name == "batch_norm_act_grad";
  return scratch_kernel(op, device, batch_norm_scratch_bytes(images),
                        [images, rectified, x = op.input_id("x"), dy = op.input_id("dy"),
                         y = adds ? op.input_id("y") : runtime::kNone,
                         dy_too = adds && op.has_input("dy_too") ? op.input_id("dy_too") : runtime::kNone,
                         dz = adds ? op.output_id("dz") : runtime::kNone, dx = op.output_id("dx"),
                         dscale = op.output_id("dscale"), dbias = op.output_id("dbias"),
                         channels = channel_ids(op, rectified ? op.input_id("bias") : runtime::kNone,
                                                op.input_id("batch_mean"), op.input_id("batch_variance"))](
                            const RunContext& context, cudaStream_t stream) {
                          const NormGradient gradient = {.x = context.data[x],
                                                         .dy = context.data[dy],
                                                         .dy_too = at_or_null<void>(context, dy_too),
                                                         .y = at_or_null<void>(context, y),
                                                         .rectified = rectified,
                                                         .dz = at_or_null<void>(context, dz),
                                                         .dx = context.data[dx],
                                                         .dscale = at(context, dscale),
                                                         .dbias = at(context, dbias)};
                          norm_gradient(images, gradient, channels.in(context), context.scratch, stream);
                        });
}

KernelDef batch_norm_act_kernel() { return {.choose_layouts = images_like_x, .make = make_own_batch_norm}; }
KernelDef batch_norm_act_grad_kernel() {
  return {.choose_layouts = images_like_x, .make = make_own_batch_norm_grad};
}
KernelDef batch_norm_add_act_kernel() {
  return {.choose_layouts = images_like_x, .make = make_own_batch_norm};
}
KernelDef batch_norm_add_act_grad_kernel() {
  return {.choose_layouts = images_like_x, .make = make_own_batch_norm_grad};
}

}  // namespace fleetrun::cuda
