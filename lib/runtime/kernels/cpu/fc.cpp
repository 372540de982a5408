// Inner products of oneDNN. An input that lies in blocks (nChw16c, after a convolution) is not made plain:
// the weight is laid out for it instead, as [out, C, H, W].
#include <dnnl.h>

#include "runtime/kernels/cpu/cpu_device.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Problem {
  Descriptor x, w, y;
};

// x as a matrix, or as the images that x or w is laid out for.
Shape view_of_x(const Value& x, int weight_dims) {
  const bool images = !x.layout.plain() || (weight_dims > 2 && x.shape.size() == 4);
  return images ? x.shape : Shape{x.shape[0], count_of(x.shape) / x.shape[0]};
}

Shape view_of_w(std::int64_t out, const Shape& x_view) {
  Shape view = x_view;
  view[0] = out;
  return view;
}

bool fits(const Value& w, const Shape& x_view) {
  return w.layout.plain() || dims_of(w) == static_cast<int>(x_view.size());
}

PrimitiveDesc forward(const Problem& way, const Descriptor* bias, dnnl_engine_t engine) {
  dnnl_inner_product_desc_t desc;
  check(dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_training, &way.x, &way.w, bias, &way.y),
        "describing fc");
  return describe_primitive(&desc, engine);
}

PrimitiveDesc backward_input(const Problem& way, dnnl_engine_t engine) {
  dnnl_inner_product_desc_t desc;
  check(dnnl_inner_product_backward_data_desc_init(&desc, &way.x, &way.w, &way.y),
        "describing fc_grad_input");
  return describe_primitive(&desc, engine, forward(way, nullptr, engine).get());
}

PrimitiveDesc backward_weights(const Problem& way, const Descriptor* bias, dnnl_engine_t engine) {
  dnnl_inner_product_desc_t desc;
  check(dnnl_inner_product_backward_weights_desc_init(&desc, &way.x, &way.w, bias, &way.y),
        "describing fc_grad_weights");
  return describe_primitive(&desc, engine, forward(way, bias, engine).get());
}

// The ways in which the weight (or its gradient) can lie, the preferred first: as it does, unless it is
// still free; or as oneDNN likes.
std::vector<Problem> ways_for_weight(const Value& x, const Value& w, const Value& y, bool free) {
  const Shape x_view = view_of_x(x, free ? 0 : dims_of(w));
  const Shape w_view = view_of_w(y.shape[1], x_view);
  const Problem chosen_by_library = {descriptor_of(x, x_view), any_layout(w_view, w.dtype), descriptor_of(y)};
  if (free || !fits(w, x_view)) return {chosen_by_library};
  return {{chosen_by_library.x, descriptor_of(w, w_view), chosen_by_library.y}, chosen_by_library};
}

Layout weight_layout(const Descriptor& descriptor) {
  return layout_of(descriptor, letters_of_weights(descriptor.ndims));
}

LayoutChoice choose_fc(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const auto ways = ways_for_weight(op.input("x"), op.input("w"), op.output("y"), query.input_free[1]);
  const PrimitiveDesc desc =
      best_way(ways, [&](const Problem& way) { return forward(way, nullptr, as_cpu(device).engine()); });
  if (desc == nullptr) op.fail("oneDNN has no inner product for " + describe(op.input("x").shape));
  return {{op.input("x").layout, weight_layout(queried(desc, dnnl_query_weights_md)), Layout()}, {Layout()}};
}

std::unique_ptr<Kernel> make_fc(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Problem way = ways_for_weight(op.input("x"), op.input("w"), op.output("y"), false).front();
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), way.x},
                                              {DNNL_ARG_WEIGHTS, op.input_id("w"), way.w},
                                              {DNNL_ARG_DST, op.output_id("y"), way.y}};
  if (op.has_input("b")) arguments.push_back({DNNL_ARG_BIAS, op.input_id("b"), descriptor_of(op.input("b"))});
  const Descriptor* bias = op.has_input("b") ? &arguments.back().descriptor : nullptr;
  return std::make_unique<PrimitiveKernel>(op, cpu, forward(way, bias, cpu.engine()), arguments);
}

struct InputGradient {
  Shape view;  // of dx: a matrix, or images where w is laid out for images
  Descriptor w, dy;

  explicit InputGradient(const OpView& op)
      : view(dims_of(op.input("w")) > 2 ? op.output("dx").shape
                                        : Shape{op.output("dx").shape[0], op.input("w").shape[1]}),
        w(descriptor_of(op.input("w"), view_of_w(op.input("w").shape[0], view))),
        dy(descriptor_of(op.input("dy"))) {}

  // A matrix is plain. Images lie in one of the ways in which images come, so that w can stay as it is.
  std::vector<Problem> ways(DType dtype) const {
    const Descriptor any_w = any_layout(view_of_w(w.dims[0], view), dtype);
    if (view.size() == 2) return {{row_major(view, dtype), w, dy}, {row_major(view, dtype), any_w, dy}};
    std::vector<Problem> list;
    for (const dnnl_format_tag_t tag : {dnnl_nChw16c, dnnl_nChw8c, dnnl_nhwc})
      list.push_back({tagged(view, dtype, tag), w, dy});
    list.push_back({any_layout(view, dtype), any_w, dy});
    return list;
  }
};

LayoutChoice choose_fc_grad_input(const LayoutQuery& query, Device& device) {
  const Value& dx = query.op.output("dx");
  const PrimitiveDesc desc = best_way(InputGradient(query.op).ways(dx.dtype), [&](const Problem& way) {
    return backward_input(way, as_cpu(device).engine());
  });
  if (desc == nullptr) query.op.fail("oneDNN has no inner product for " + describe(dx.shape));
  return {{Layout(), weight_layout(queried(desc, dnnl_query_weights_md))},
          {layout_of(queried(desc, dnnl_query_diff_src_md), kActivation)}};
}

std::unique_ptr<Kernel> make_fc_grad_input(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const InputGradient problem(op);
  const Problem way = {descriptor_of(op.output("dx"), problem.view), problem.w, problem.dy};
  return std::make_unique<PrimitiveKernel>(
      op, cpu, backward_input(way, cpu.engine()),
      std::vector<PrimitiveArgument>{{DNNL_ARG_DIFF_DST, op.input_id("dy"), way.y},
                                     {DNNL_ARG_WEIGHTS, op.input_id("w"), way.w},
                                     {DNNL_ARG_DIFF_SRC, op.output_id("dx"), way.x}});
}

LayoutChoice choose_fc_grad_weights(const LayoutQuery& query, Device& device) {
  const OpView& op = query.op;
  const auto ways = ways_for_weight(op.input("x"), op.output("dw"), op.input("dy"), false);
  const PrimitiveDesc desc = best_way(
      ways, [&](const Problem& way) { return backward_weights(way, nullptr, as_cpu(device).engine()); });
  if (desc == nullptr) op.fail("oneDNN has no inner product for " + describe(op.input("x").shape));
  return {{op.input("x").layout, Layout()},
          {weight_layout(queried(desc, dnnl_query_diff_weights_md)), Layout()}};
}

std::unique_ptr<Kernel> make_fc_grad_weights(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Problem way = ways_for_weight(op.input("x"), op.output("dw"), op.input("dy"), false).front();
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), way.x},
                                              {DNNL_ARG_DIFF_WEIGHTS, op.output_id("dw"), way.w},
                                              {DNNL_ARG_DIFF_DST, op.input_id("dy"), way.y}};
  if (op.has_output("db"))
    arguments.push_back({DNNL_ARG_DIFF_BIAS, op.output_id("db"), descriptor_of(op.output("db"))});
  const Descriptor* bias = op.has_output("db") ? &arguments.back().descriptor : nullptr;
  return std::make_unique<PrimitiveKernel>(op, cpu, backward_weights(way, bias, cpu.engine()), arguments);
}

}  // namespace

KernelDef fc_kernel() { return {.choose_layouts = choose_fc, .make = make_fc}; }
KernelDef fc_grad_input_kernel() {
  return {.choose_layouts = choose_fc_grad_input, .make = make_fc_grad_input};
}
KernelDef fc_grad_weights_kernel() {
  return {.choose_layouts = choose_fc_grad_weights, .make = make_fc_grad_weights};
}

}  // namespace fleetrun::runtime::cpu
