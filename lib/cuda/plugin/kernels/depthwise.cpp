#include "cuda/plugin/depthwise.h"

#include "cuda/plugin/simple_kernel.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;
using runtime::Shape;

Depthwise depthwise_of(const OpView& op, const Value& x, const Value& y, const Shape& w) {
  for (const Value* image : {&x, &y}) narrow(op, elements_of(op, *image));
  const runtime::ops::Window window = runtime::ops::read_window(op, w[2], w[3]);
  const auto axis = [&](std::size_t i) -> DepthwiseAxis {
    return {.in = static_cast<int>(x.shape[i + 2]),
            .out = static_cast<int>(y.shape[i + 2]),
            .kernel = narrow(op, window.kernel[i]),
            .stride = narrow(op, window.strides[i]),
            .dilation = narrow(op, window.dilations[i]),
            .before = narrow(op, window.before[i])};
  };
  return {.images = x.shape[0],
          .channels = static_cast<int>(x.shape[1]),
          .channels_last = is_channels_last(x.layout),
          .rows = axis(0),
          .columns = axis(1)};
}

std::unique_ptr<Kernel> make_forward(const OpView& op, Device& device) {
  const Depthwise sizes = depthwise_of(op, op.input("x"), op.output("y"), op.input("w").shape);
  return scratch_kernel(op, device, bytes_of_taps(sizes),
                        [sizes, x = op.input_id("x"), w = op.input_id("w"), b = op.input_id("b"),
                         y = op.output_id("y")](const RunContext& context, cudaStream_t stream) {
                          relu_depthwise(sizes, at(context, x), at(context, w), at_or_null(context, b),
                                         at(context, y), context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_grad_input(const OpView& op, Device& device) {
  const Depthwise sizes = depthwise_of(op, op.input("x"), op.input("dy"), op.input("w").shape);
  return scratch_kernel(op, device, bytes_of_taps(sizes),
                        [sizes, dy = op.input_id("dy"), w = op.input_id("w"), x = op.input_id("x"),
                         dx = op.output_id("dx")](const RunContext& context, cudaStream_t stream) {
                          relu_depthwise_grad_input(sizes, at(context, dy), at(context, w), at(context, x),
                                                    at(context, dx), context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_grad_weights(const OpView& op, Device& device) {
  const Depthwise sizes = depthwise_of(op, op.input("x"), op.input("dy"), op.integers("weight_shape"));
  return scratch_kernel(op, device, bytes_of_products(sizes),
                        [sizes, x = op.input_id("x"), dy = op.input_id("dy"), dw = op.output_id("dw"),
                         db = op.output_id("db")](const RunContext& context, cudaStream_t stream) {
                          relu_depthwise_grad_weights(sizes, at(context, x), at(context, dy), at(context, dw),
                                                      at_or_null(context, db), context.scratch, stream);
                        });
}

}  // namespace

// Weights of one input channel lie alike in both layouts.
KernelDef relu_depthwise_kernel() { return {.choose_layouts = as_the_job_says, .make = make_forward}; }
KernelDef relu_depthwise_grad_input_kernel() {
  return {.choose_layouts = as_the_job_says, .make = make_grad_input};
}
KernelDef relu_depthwise_grad_weights_kernel() {
  return {.choose_layouts = as_the_job_says, .make = make_grad_weights};
}

}  // namespace fleetrun::cuda
