#include "cuda/plugin/sync_batch_norm.h"

#include "cuda/plugin/kernels/own_batch_norm.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

std::unique_ptr<Kernel> make_sums(const OpView& op, Device& device) {
  const NormImages images = norm_images_of(op);
  return scratch_kernel(op, device, bytes_of_norm_sums(images),
                        [images, x = op.input_id("x"), mean = op.input_id("mean"),
                         sums = op.output_id("sums")](const RunContext& context, cudaStream_t stream) {
                          sync_norm_sums(images, context.data[x], at(context, mean), at(context, sums),
                                         context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_grad_sums(const OpView& op, Device& device) {
  const NormImages images = norm_images_of(op);
  return scratch_kernel(
      op, device, bytes_of_norm_sums(images),
      [images, x = op.input_id("x"), dy = op.input_id("dy"), mean = op.input_id("batch_mean"),
       variance = op.input_id("batch_variance"), sums = op.output_id("sums"), dscale = op.output_id("dscale"),
       dbias = op.output_id("dbias"),
       epsilon = op.number("epsilon")](const RunContext& context, cudaStream_t stream) {
        const NormGradSums arrays = {context.data[x],       context.data[dy],  at(context, mean),
                                     at(context, variance), at(context, sums), at(context, dscale),
                                     at(context, dbias)};
        sync_norm_grad_sums(images, arrays, epsilon, context.scratch, stream);
      });
}

std::unique_ptr<Kernel> make_norm(const OpView& op, Device& device) {
  const NormImages images = norm_images_of(op);
  const NormSettings settings = {.epsilon = op.number("epsilon"),
                                 .keep = static_cast<float>(op.number("momentum")),
                                 .take = static_cast<float>(1.0 - op.number("momentum"))};
  return scratch_kernel(
      op, device, bytes_of_norm_factors(images),
      [images, settings, x = op.input_id("x"), scale = op.input_id("scale"), bias = op.input_id("bias"),
       sums = op.input_id("sums"), mean = op.input_id("mean"), variance = op.input_id("variance"),
       y = op.output_id("y"), batch_mean = op.output_id("batch_mean"),
       batch_variance = op.output_id("batch_variance")](const RunContext& context, cudaStream_t stream) {
        const SyncNorm arrays = {.x = context.data[x],
                                 .y = context.data[y],
                                 .scale = at(context, scale),
                                 .bias = at(context, bias),
                                 .sums = at(context, sums),
                                 .mean = at(context, mean),
                                 .variance = at(context, variance),
                                 .batch_mean = at(context, batch_mean),
                                 .batch_variance = at(context, batch_variance)};
        sync_norm(images, arrays, settings, context.scratch, stream);
      });
}

std::unique_ptr<Kernel> make_norm_grad(const OpView& op, Device& device) {
  const NormImages images = norm_images_of(op);
  return scratch_kernel(op, device, bytes_of_norm_factors(images),
                        [images, x = op.input_id("x"), dy = op.input_id("dy"), dx = op.output_id("dx"),
                         scale = op.input_id("scale"), mean = op.input_id("batch_mean"),
                         variance = op.input_id("batch_variance"), sums = op.input_id("sums"),
                         epsilon = op.number("epsilon")](const RunContext& context, cudaStream_t stream) {
                          const SyncNormGrad arrays = {
                              context.data[x],   context.data[dy],      context.data[dx], at(context, scale),
                              at(context, mean), at(context, variance), at(context, sums)};
                          sync_norm_grad(images, arrays, epsilon, context.scratch, stream);
                        });
}

}  // namespace

KernelDef sync_batch_norm_sums_kernel() { return {.choose_layouts = images_like_x, .make = make_sums}; }
KernelDef sync_batch_norm_kernel() { return {.choose_layouts = images_like_x, .make = make_norm}; }
KernelDef sync_batch_norm_grad_sums_kernel() {
  return {.choose_layouts = images_like_x, .make = make_grad_sums};
}
KernelDef sync_batch_norm_grad_kernel() { return {.choose_layouts = images_like_x, .make = make_norm_grad}; }

}  // namespace fleetrun::cuda
