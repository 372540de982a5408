#include "runtime/kernels/cpu/convolution.h"

#include <dnnl.h>

#include <array>

#include <fmt/format.h>

#include "runtime/kernels/cpu/onednn/inner_product.h"
#include "runtime/kernels/cpu/patches.h"

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

constexpr std::array kAlgorithms = {Algorithm::direct, Algorithm::winograd, Algorithm::gemm};

Algorithm algorithm_of(const OpView& op) {
  if (!op.op().attributes.contains(kAlgorithm)) return Algorithm::direct;
  const std::string& wanted = op.text(kAlgorithm);
  for (const Algorithm algorithm : kAlgorithms)
    if (name_of(algorithm) == wanted) return algorithm;
  op.fail(fmt::format("{} is {}, wanted {}, {} or {}", kAlgorithm, wanted, name_of(Algorithm::direct),
                      name_of(Algorithm::winograd), name_of(Algorithm::gemm)));
}

dnnl_alg_kind_t kind_of(Algorithm algorithm) {
  return algorithm == Algorithm::winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

}  // namespace

std::string name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::winograd:
      return "winograd";
    case Algorithm::gemm:
      return "gemm";
    default:
      return "direct";
  }
}

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

template <typename Describe>
PrimitiveDesc Convolution::product(const Way& way, const Describe& describe) const {
  const auto matrices = as_matrices(window, weight_view, way);
  return matrices ? describe(*matrices) : nullptr;
}

PrimitiveDesc Convolution::forward(const Way& way, dnnl_engine_t engine) const {
  const Descriptor b = bias_descriptor();
  const Descriptor* const bias_or_none = bias ? &b : nullptr;
  if (algorithm == Algorithm::gemm)
    return product(way, [&](const Way& seen) { return inner_product(seen, bias_or_none, engine); });
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_training, kind_of(algorithm), &way.x, &way.w, bias_or_none, &way.y,
            window.strides.data(), gaps(window).data(), window.before.data(), window.after.data()),
        "describing conv2d");
  return describe_primitive(&desc, engine);
}

PrimitiveDesc Convolution::grad_input(const Way& way, dnnl_engine_t engine) const {
  if (algorithm == Algorithm::gemm) {
    if (!apart(window)) return nullptr;  // patches would have to be added
    return product(way, [&](const Way& seen) { return inner_product_grad_input(seen, engine); });
  }
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_backward_data_desc_init(&desc, kind_of(algorithm), &way.x, &way.w, &way.y,
                                                         window.strides.data(), gaps(window).data(),
                                                         window.before.data(), window.after.data()),
        "describing conv2d_grad_input");
  return describe_primitive(&desc, engine, forward(way, engine).get());
}

PrimitiveDesc Convolution::grad_weights(const Way& way, dnnl_engine_t engine) const {
  const Descriptor b = bias_descriptor();
  const Descriptor* const bias_or_none = bias ? &b : nullptr;
  if (algorithm == Algorithm::gemm)
    return product(way,
                   [&](const Way& seen) { return inner_product_grad_weights(seen, bias_or_none, engine); });
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, kind_of(algorithm), &way.x, &way.w, bias_or_none, &way.y, window.strides.data(),
            gaps(window).data(), window.before.data(), window.after.data()),
        "describing conv2d_grad_weights");
  return describe_primitive(&desc, engine, forward(way, engine).get());
}

Way Convolution::seen(const Way& way) const {
  return algorithm == Algorithm::gemm ? as_matrices(window, weight_view, way).value_or(way) : way;
}

std::unique_ptr<Kernel> Convolution::make(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                                          const std::vector<PrimitiveArgument>& arguments,
                                          const Way& way) const {
  if (algorithm == Algorithm::gemm)
    return make_product_of_patches(op, device, desc, arguments, PatchGeometry(window, way));
  return std::make_unique<PrimitiveKernel>(op, device, desc, arguments);
}

Layout Convolution::image_layout(const Value& image, const PrimitiveDesc& desc, dnnl_query_t what) const {
  const Descriptor last = channels_last(image.shape, image.dtype);
  return layout_of(algorithm == Algorithm::gemm ? last : queried(desc, what), kActivation);
}

Layout Convolution::weight_layout(const PrimitiveDesc& desc, dnnl_query_t what) const {
  const Descriptor& found = queried(desc, what);
  return layout_of(algorithm == Algorithm::gemm ? weight_of_matrix(found, weight_view) : found,
                   letters_of_weights(static_cast<int>(weight_view.size())));
}

}  // namespace fleetrun::runtime::cpu
