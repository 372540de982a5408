#include "runtime/kernels/cpu/convolution.h"

#include <dnnl.h>

#include <fmt/format.h>

namespace fleetrun::runtime::cpu {
namespace {

Shape view_with_groups(const Shape& w, std::int64_t groups) {
  if (groups == 1) return w;
  return {groups, w[0] / groups, w[1], w[2], w[3]};
}

// oneDNN counts the elements left out between two taps.
std::array<std::int64_t, 2> gaps(const ops::Window& window) {
  return {window.dilations[0] - 1, window.dilations[1] - 1};
}

dnnl_alg_kind_t algorithm_of(const OpView& op) {
  if (!op.op().attributes.contains(kAlgorithm)) return dnnl_convolution_direct;
  const std::string& name = op.text(kAlgorithm);
  if (name == kWinograd) return dnnl_convolution_winograd;
  if (name != kDirect)
    op.fail(fmt::format("{} is {}, wanted {} or {}", kAlgorithm, name, kDirect, kWinograd));
  return dnnl_convolution_direct;
}

}  // namespace

Convolution::Convolution(const OpView& op, const Shape& x, const Shape& w, bool has_bias)
    : window(ops::read_window(op, w[2], w[3])),
      weight_view(view_with_groups(w, op.integer("groups"))),
      channels(x[1]),
      bias(has_bias),
      algorithm(algorithm_of(op)),
      bias_type(op.program().value(op.op().inputs.front()).dtype) {}

Descriptor Convolution::bias_descriptor() const {
  const std::size_t first = weight_view.size() - 4;  // 1 when there are groups
  return row_major({first == 0 ? weight_view[0] : weight_view[0] * weight_view[1]}, bias_type);
}

PrimitiveDesc Convolution::forward(const ConvolutionWay& way, dnnl_engine_t engine) const {
  dnnl_convolution_desc_t desc;
  const Descriptor b = bias_descriptor();
  check(dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_training, algorithm, &way.x, &way.w, bias ? &b : nullptr, &way.y,
            window.strides.data(), gaps(window).data(), window.before.data(), window.after.data()),
        "describing conv2d");
  return describe_primitive(&desc, engine);
}

PrimitiveDesc Convolution::grad_input(const ConvolutionWay& way, dnnl_engine_t engine) const {
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_backward_data_desc_init(&desc, algorithm, &way.x, &way.w, &way.y,
                                                         window.strides.data(), gaps(window).data(),
                                                         window.before.data(), window.after.data()),
        "describing conv2d_grad_input");
  return describe_primitive(&desc, engine, forward(way, engine).get());
}

PrimitiveDesc Convolution::grad_weights(const ConvolutionWay& way, dnnl_engine_t engine) const {
  dnnl_convolution_desc_t desc;
  const Descriptor b = bias_descriptor();
  check(dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, algorithm, &way.x, &way.w, bias ? &b : nullptr, &way.y, window.strides.data(),
            gaps(window).data(), window.before.data(), window.after.data()),
        "describing conv2d_grad_weights");
  return describe_primitive(&desc, engine, forward(way, engine).get());
}

}  // namespace fleetrun::runtime::cpu
