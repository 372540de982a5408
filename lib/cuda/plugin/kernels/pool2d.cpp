#include "cuda/plugin/simple_kernel.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

Pooling pooling_of(const OpView& op, const Value& x, const runtime::Shape& y) {
  const runtime::ops::Window window =
      runtime::ops::read_window(op, op.integers("kernel")[0], op.integers("kernel")[1]);
  narrow(op, runtime::count_of(x.shape));
  const bool last = is_channels_last(x.layout);
  Pooling pooling = {.planes = last ? x.shape[0] : x.shape[0] * x.shape[1],
                     .lanes = last ? narrow(op, x.shape[1]) : 1,
                     .exclusive = op.flag("exclusive")};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    pooling.in[axis] = static_cast<int>(x.shape[axis + 2]);
    pooling.out[axis] = static_cast<int>(y[axis + 2]);
    pooling.kernel[axis] = static_cast<int>(window.kernel[axis]);
    pooling.strides[axis] = static_cast<int>(window.strides[axis]);
    pooling.before[axis] = static_cast<int>(window.before[axis]);
  }
  return pooling;
}

std::unique_ptr<Kernel> make_pool2d(const OpView& op, Device& device) {
  const auto pool = op.text("kind") == "max" ? max_pool : average_pool;
  return simple_kernel(op, device,
                       [pool, type = number_of(op, op.input("x")),
                        pooling = pooling_of(op, op.input("x"), op.output("y").shape), x = op.input_id("x"),
                        y = op.output_id("y")](const RunContext& context, cudaStream_t stream) {
                         pool(type, context.data[x], context.data[y], pooling, stream);
                       });
}

std::unique_ptr<Kernel> make_pool2d_grad(const OpView& op, Device& device) {
  const Pooling pooling = pooling_of(op, op.output("dx"), op.input("dy").shape);
  const Number type = number_of(op, op.output("dx"));
  const ValueId dy = op.input_id("dy"), dx = op.output_id("dx");
  if (op.text("kind") != "max")
    return simple_kernel(op, device, [type, pooling, dy, dx](const RunContext& context, cudaStream_t stream) {
      average_pool_grad(type, context.data[dy], context.data[dx], pooling, stream);
    });
  return scratch_kernel(
      op, device, max_pool_grad_scratch(pooling),
      [type, pooling, dy, dx, x = op.input_id("x")](const RunContext& context, cudaStream_t stream) {
        max_pool_grad(type, context.data[x], context.data[dy], context.data[dx], context.scratch, pooling,
                      stream);
      });
}

}  // namespace

KernelDef pool2d_kernel() { return {.choose_layouts = images_like_x, .make = make_pool2d}; }
KernelDef pool2d_grad_kernel() { return {.choose_layouts = images_like_x, .make = make_pool2d_grad}; }

}  // namespace fleetrun::cuda
