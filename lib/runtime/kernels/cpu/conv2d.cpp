// Convolutions of oneDNN in its blocked layouts. Images of few channels (the first layer's) stay plain: for
// those oneDNN has kernels that read nchw, and none but its reference that reads nhwc.
#include <dnnl.h>

#include <utility>

#include "runtime/kernels/cpu/convolution.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kFewChannels = 3;  // oneDNN 2.6's "first convolution" kernels take 1 to 3

Descriptor anywhere(const Value& value) { return any_layout(value.shape, value.dtype); }

// Blocks that an earlier kernel chose are kept; what is plain may change, but for images of few channels.
Descriptor kept_if_blocked(const Value& value) {
  const bool few = value.shape[1] <= kFewChannels;
  return few || !value.layout.plain() ? descriptor_of(value) : anywhere(value);
}

struct Direction {
  PrimitiveDesc (Convolution::*describe)(const Way&, dnnl_engine_t) const;
  const char* image;  // the larger one that it reads
  dnnl_query_t what;  // as which a primitive is asked for its layout
};
constexpr Direction kForward = {&Convolution::forward, "x", dnnl_query_src_md};
constexpr Direction kGradInput = {&Convolution::grad_input, "dy", dnnl_query_diff_dst_md};
constexpr Direction kGradWeights = {&Convolution::grad_weights, "x", dnnl_query_src_md};

PrimitiveDesc best(const OpView& op, const Convolution& conv, const Direction& direction,
                   const std::vector<Way>& ways, Device& device) {
  dnnl_engine_t const engine = as_cpu(device).engine();
  PrimitiveDesc desc =
      best_way(ways, [&](const Way& way) { return (conv.*direction.describe)(way, engine); });
  if (desc == nullptr) op.fail("oneDNN has no convolution for these sizes");
  return desc;
}

// The usual one, and those that oneDNN has good code for in the layouts that it likes best. Products of matrices only where the
// usual one, too, wants the image with its channels last: elsewhere images would be reordered for them.
std::vector<std::string> names(const OpView& op, Convolution problem, const Direction& direction,
                               const Way& way, Device& device) {
  dnnl_engine_t const engine = as_cpu(device).engine();
  std::vector<std::string> found = {name_of(Algorithm::direct)};
  const PrimitiveDesc usual = (problem.*direction.describe)(way, engine);
  const Value& image = op.input(direction.image);
  const Layout last = layout_of(channels_last(image.shape, image.dtype), kActivation);
  const bool wants_last = optimised(usual) && problem.image_layout(image, usual, direction.what) == last;
  for (const Algorithm other : {Algorithm::winograd, Algorithm::gemm}) {
    problem.algorithm = other;
    if ((other != Algorithm::gemm || wants_last) && optimised((problem.*direction.describe)(way, engine)))
      found.push_back(name_of(other));
  }
  return found;
}

Convolution forward_problem(const OpView& op) {
  return Convolution(op, op.input("x").shape, op.input("w").shape, op.has_input("b"));
}

std::vector<std::string> conv2d_algorithms(const OpView& op, Device& device) {
  const Convolution conv = forward_problem(op);
  const Way way = {kept_if_blocked(op.input("x")), any_layout(conv.weight_view, op.input("w").dtype),
                   anywhere(op.output("y"))};
  return names(op, conv, kForward, way, device);
}

LayoutChoice choose_conv2d(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const Convolution conv = forward_problem(op);
  const Descriptor x = kept_if_blocked(op.input("x"));
  const Descriptor any_w = any_layout(conv.weight_view, op.input("w").dtype);
  const Descriptor any_x = anywhere(op.input("x")), any_y = anywhere(op.output("y"));
  std::vector<Way> ways;
  if (!query.input_free[1]) ways.push_back({x, descriptor_of(op.input("w"), conv.weight_view), any_y});
  ways.push_back({any_x, any_w, any_y});
  ways.push_back({x, any_w, any_y});
  if (op.input("x").dtype != DType::f32)  // matrix units want layouts of their own: worth a reorder
    std::swap(ways[ways.size() - 2], ways.back());
  const PrimitiveDesc desc = best(op, conv, kForward, ways, device);
  return {{conv.image_layout(op.input("x"), desc, dnnl_query_src_md),
           conv.weight_layout(desc, dnnl_query_weights_md), Layout()},
          {conv.image_layout(op.output("y"), desc, dnnl_query_dst_md)}};
}

std::unique_ptr<Kernel> make_conv2d(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Convolution conv = forward_problem(op);
  const Way way = {descriptor_of(op.input("x")), descriptor_of(op.input("w"), conv.weight_view),
                   descriptor_of(op.output("y"))};
  const Way seen = conv.seen(way);
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), seen.x},
                                              {DNNL_ARG_WEIGHTS, op.input_id("w"), seen.w},
                                              {DNNL_ARG_DST, op.output_id("y"), seen.y}};
  if (conv.bias) arguments.push_back({DNNL_ARG_BIAS, op.input_id("b"), conv.bias_descriptor()});
  return conv.make(op, cpu, conv.forward(way, cpu.engine()), arguments, way);
}

Convolution grad_input_problem(const OpView& op) {
  return Convolution(op, op.output("dx").shape, op.input("w").shape, false);
}

std::vector<std::string> grad_input_algorithms(const OpView& op, Device& device) {
  const Convolution conv = grad_input_problem(op);
  const Way way = {anywhere(op.output("dx")), any_layout(conv.weight_view, op.input("w").dtype),
                   anywhere(op.input("dy"))};
  return names(op, conv, kGradInput, way, device);
}

LayoutChoice choose_grad_input(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const Convolution conv = grad_input_problem(op);
  const Value& dy = op.input("dy");
  const Descriptor any_dx = anywhere(op.output("dx"));
  const Descriptor any_w = any_layout(conv.weight_view, op.input("w").dtype);
  const Descriptor near_dy = dy.layout.plain() ? anywhere(dy) : descriptor_of(dy);
  const std::vector<Way> ways = {{any_dx, descriptor_of(op.input("w"), conv.weight_view), near_dy},
                                 {any_dx, any_w, near_dy},
                                 {any_dx, any_w, anywhere(dy)}};
  const PrimitiveDesc desc = best(op, conv, kGradInput, ways, device);
  return {
      {conv.image_layout(dy, desc, dnnl_query_diff_dst_md), conv.weight_layout(desc, dnnl_query_weights_md)},
      {conv.image_layout(op.output("dx"), desc, dnnl_query_diff_src_md)}};
}

std::unique_ptr<Kernel> make_grad_input(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Convolution conv = grad_input_problem(op);
  const Way way = {descriptor_of(op.output("dx")), descriptor_of(op.input("w"), conv.weight_view),
                   descriptor_of(op.input("dy"))};
  const Way seen = conv.seen(way);
  return conv.make(op, cpu, conv.grad_input(way, cpu.engine()),
                   {{DNNL_ARG_DIFF_DST, op.input_id("dy"), seen.y},
                    {DNNL_ARG_WEIGHTS, op.input_id("w"), seen.w},
                    {DNNL_ARG_DIFF_SRC, op.output_id("dx"), seen.x}},
                   way);
}

Convolution grad_weights_problem(const OpView& op) {
  return Convolution(op, op.input("x").shape, op.output("dw").shape, op.has_output("db"));
}

std::vector<std::string> grad_weights_algorithms(const OpView& op, Device& device) {
  const Convolution conv = grad_weights_problem(op);
  const Way way = {kept_if_blocked(op.input("x")), any_layout(conv.weight_view, op.output("dw").dtype),
                   anywhere(op.input("dy"))};
  return names(op, conv, kGradWeights, way, device);
}

// dw is wanted as the parameter lies, which is how the value is laid out when this is asked.
LayoutChoice choose_grad_weights(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const Convolution conv = grad_weights_problem(op);
  const Value& dy = op.input("dy");
  const Descriptor x = kept_if_blocked(op.input("x"));
  const Descriptor near_dy = dy.layout.plain() ? anywhere(dy) : descriptor_of(dy);
  const Descriptor any_w = any_layout(conv.weight_view, op.output("dw").dtype);
  const std::vector<Way> ways = {{x, descriptor_of(op.output("dw"), conv.weight_view), near_dy},
                                 {x, any_w, near_dy},
                                 {anywhere(op.input("x")), any_w, anywhere(dy)},
                                 {x, any_w, anywhere(dy)}};
  const PrimitiveDesc desc = best(op, conv, kGradWeights, ways, device);
  return {{conv.image_layout(op.input("x"), desc, dnnl_query_src_md),
           conv.image_layout(dy, desc, dnnl_query_diff_dst_md)},
          {conv.weight_layout(desc, dnnl_query_diff_weights_md), Layout()}};
}

std::unique_ptr<Kernel> make_grad_weights(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Convolution conv = grad_weights_problem(op);
  const Way way = {descriptor_of(op.input("x")), descriptor_of(op.output("dw"), conv.weight_view),
                   descriptor_of(op.input("dy"))};
  const Way seen = conv.seen(way);
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), seen.x},
                                              {DNNL_ARG_DIFF_WEIGHTS, op.output_id("dw"), seen.w},
                                              {DNNL_ARG_DIFF_DST, op.input_id("dy"), seen.y}};
  if (conv.bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, op.output_id("db"), conv.bias_descriptor()});
  return conv.make(op, cpu, conv.grad_weights(way, cpu.engine()), arguments, way);
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
