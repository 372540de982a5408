// Convolutions of oneDNN in its blocked layouts. Images of few channels (the first layer's) stay plain: for
// those oneDNN has kernels that read nchw, and none but its reference that reads nhwc.
#include <dnnl.h>

#include <utility>

#include "runtime/kernels/cpu/convolution.h"
#include "runtime/kernels/cpu/cpu_device.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kFewChannels = 3;  // oneDNN 2.6's "first convolution" kernels take 1 to 3

Descriptor anywhere(const Value& value) { return any_layout(value.shape, value.dtype); }

// Blocks that an earlier kernel chose are kept; what is plain may change, but for images of few channels.
Descriptor kept_if_blocked(const Value& value) {
  const bool few = value.shape[1] <= kFewChannels;
  return few || !value.layout.plain() ? descriptor_of(value) : anywhere(value);
}

Layout image_layout(const PrimitiveDesc& desc, dnnl_query_t what) {
  return layout_of(queried(desc, what), kActivation);
}

Layout weight_layout(const PrimitiveDesc& desc, dnnl_query_t what) {
  const Descriptor& descriptor = queried(desc, what);
  return layout_of(descriptor, letters_of_weights(descriptor.ndims));
}

PrimitiveDesc expect_one(PrimitiveDesc desc, const OpView& op) {
  if (desc == nullptr) op.fail("oneDNN has no convolution for these sizes");
  return desc;
}

// Winograd where oneDNN has good code for it in the layouts that it likes best.
std::vector<std::string> names(bool has_winograd) {
  return has_winograd ? std::vector<std::string>{kDirect, kWinograd} : std::vector<std::string>{kDirect};
}

Convolution by_winograd(Convolution problem) {
  problem.algorithm = dnnl_convolution_winograd;
  return problem;
}

Convolution forward_problem(const OpView& op) {
  return Convolution(op, op.input("x").shape, op.input("w").shape, op.has_input("b"));
}

std::vector<std::string> conv2d_algorithms(const OpView& op, Device& device) {
  const Convolution conv = by_winograd(forward_problem(op));
  const ConvolutionWay way = {kept_if_blocked(op.input("x")),
                              any_layout(conv.weight_view, op.input("w").dtype), anywhere(op.output("y"))};
  return names(optimised(conv.forward(way, as_cpu(device).engine())));
}

LayoutChoice choose_conv2d(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const Convolution conv = forward_problem(op);
  const Descriptor x = kept_if_blocked(op.input("x"));
  const Descriptor any_w = any_layout(conv.weight_view, op.input("w").dtype);
  const Descriptor any_x = anywhere(op.input("x")), any_y = anywhere(op.output("y"));
  std::vector<ConvolutionWay> ways;
  if (!query.input_free[1]) ways.push_back({x, descriptor_of(op.input("w"), conv.weight_view), any_y});
  ways.push_back({any_x, any_w, any_y});
  ways.push_back({x, any_w, any_y});
  if (op.input("x").dtype != DType::f32)  // matrix units want layouts of their own: worth a reorder
    std::swap(ways[ways.size() - 2], ways.back());
  const PrimitiveDesc desc = expect_one(
      best_way(ways, [&](const ConvolutionWay& way) { return conv.forward(way, as_cpu(device).engine()); }),
      op);
  return {{image_layout(desc, dnnl_query_src_md), weight_layout(desc, dnnl_query_weights_md), Layout()},
          {image_layout(desc, dnnl_query_dst_md)}};
}

std::unique_ptr<Kernel> make_conv2d(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Convolution conv = forward_problem(op);
  const ConvolutionWay way = {descriptor_of(op.input("x")), descriptor_of(op.input("w"), conv.weight_view),
                              descriptor_of(op.output("y"))};
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), way.x},
                                              {DNNL_ARG_WEIGHTS, op.input_id("w"), way.w},
                                              {DNNL_ARG_DST, op.output_id("y"), way.y}};
  if (conv.bias) arguments.push_back({DNNL_ARG_BIAS, op.input_id("b"), conv.bias_descriptor()});
  return std::make_unique<PrimitiveKernel>(op, cpu, conv.forward(way, cpu.engine()), arguments);
}

Convolution grad_input_problem(const OpView& op) {
  return Convolution(op, op.output("dx").shape, op.input("w").shape, false);
}

std::vector<std::string> grad_input_algorithms(const OpView& op, Device& device) {
  const Convolution conv = by_winograd(grad_input_problem(op));
  const ConvolutionWay way = {anywhere(op.output("dx")), any_layout(conv.weight_view, op.input("w").dtype),
                              anywhere(op.input("dy"))};
  return names(optimised(conv.grad_input(way, as_cpu(device).engine())));
}

LayoutChoice choose_grad_input(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const Convolution conv = grad_input_problem(op);
  const Value& dy = op.input("dy");
  const Descriptor any_dx = anywhere(op.output("dx"));
  const Descriptor any_w = any_layout(conv.weight_view, op.input("w").dtype);
  const Descriptor near_dy = dy.layout.plain() ? anywhere(dy) : descriptor_of(dy);
  const std::vector<ConvolutionWay> ways = {{any_dx, descriptor_of(op.input("w"), conv.weight_view), near_dy},
                                            {any_dx, any_w, near_dy},
                                            {any_dx, any_w, anywhere(dy)}};
  const PrimitiveDesc desc = expect_one(
      best_way(ways,
               [&](const ConvolutionWay& way) { return conv.grad_input(way, as_cpu(device).engine()); }),
      op);
  return {{image_layout(desc, dnnl_query_diff_dst_md), weight_layout(desc, dnnl_query_weights_md)},
          {image_layout(desc, dnnl_query_diff_src_md)}};
}

std::unique_ptr<Kernel> make_grad_input(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Convolution conv = grad_input_problem(op);
  const ConvolutionWay way = {descriptor_of(op.output("dx")), descriptor_of(op.input("w"), conv.weight_view),
                              descriptor_of(op.input("dy"))};
  return std::make_unique<PrimitiveKernel>(
      op, cpu, conv.grad_input(way, cpu.engine()),
      std::vector<PrimitiveArgument>{{DNNL_ARG_DIFF_DST, op.input_id("dy"), way.y},
                                     {DNNL_ARG_WEIGHTS, op.input_id("w"), way.w},
                                     {DNNL_ARG_DIFF_SRC, op.output_id("dx"), way.x}});
}

Convolution grad_weights_problem(const OpView& op) {
  return Convolution(op, op.input("x").shape, op.output("dw").shape, op.has_output("db"));
}

std::vector<std::string> grad_weights_algorithms(const OpView& op, Device& device) {
  const Convolution conv = by_winograd(grad_weights_problem(op));
  const ConvolutionWay way = {kept_if_blocked(op.input("x")),
                              any_layout(conv.weight_view, op.output("dw").dtype), anywhere(op.input("dy"))};
  return names(optimised(conv.grad_weights(way, as_cpu(device).engine())));
}

// dw is wanted as the parameter lies, which is how the value is laid out when this is asked.
LayoutChoice choose_grad_weights(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const Convolution conv = grad_weights_problem(op);
  const Value& dy = op.input("dy");
  const Descriptor x = kept_if_blocked(op.input("x"));
  const Descriptor near_dy = dy.layout.plain() ? anywhere(dy) : descriptor_of(dy);
  const Descriptor any_w = any_layout(conv.weight_view, op.output("dw").dtype);
  const std::vector<ConvolutionWay> ways = {{x, descriptor_of(op.output("dw"), conv.weight_view), near_dy},
                                            {x, any_w, near_dy},
                                            {anywhere(op.input("x")), any_w, anywhere(dy)},
                                            {x, any_w, anywhere(dy)}};
  const PrimitiveDesc desc = expect_one(
      best_way(ways,
               [&](const ConvolutionWay& way) { return conv.grad_weights(way, as_cpu(device).engine()); }),
      op);
  return {{image_layout(desc, dnnl_query_src_md), image_layout(desc, dnnl_query_diff_dst_md)},
          {weight_layout(desc, dnnl_query_diff_weights_md), Layout()}};
}

std::unique_ptr<Kernel> make_grad_weights(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Convolution conv = grad_weights_problem(op);
  const ConvolutionWay way = {descriptor_of(op.input("x")), descriptor_of(op.output("dw"), conv.weight_view),
                              descriptor_of(op.input("dy"))};
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), way.x},
                                              {DNNL_ARG_DIFF_WEIGHTS, op.output_id("dw"), way.w},
                                              {DNNL_ARG_DIFF_DST, op.input_id("dy"), way.y}};
  if (conv.bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, op.output_id("db"), conv.bias_descriptor()});
  return std::make_unique<PrimitiveKernel>(op, cpu, conv.grad_weights(way, cpu.engine()), arguments);
}

}  // namespace

KernelDef conv2d_kernel() {
  return {.choose_layouts = choose_conv2d, .make = make_conv2d, .algorithms = conv2d_algorithms};
}
KernelDef conv2d_grad_input_kernel() {
  return {.choose_layouts = choose_grad_input, .make = make_grad_input, .algorithms = grad_input_algorithms};
}
KernelDef conv2d_grad_weights_kernel() {
  return {.choose_layouts = choose_grad_weights,
          .make = make_grad_weights,
          .algorithms = grad_weights_algorithms};
}

}  // namespace fleetrun::runtime::cpu
