// The three convolutions of conv2d and its gradients as problems of oneDNN, and how to lay them out.
#pragma once
#include <dnnl_types.h>

#include <string>
#include <vector>

#include "runtime/kernels/cpu/primitive.h"
#include "runtime/ops/op_def.h"
#include "runtime/ops/window.h"

namespace fleetrun::runtime::cpu {

// How image, weight and result lie; with their gradients in their places in the backward directions.
struct ConvolutionWay {
  Descriptor x, w, y;
};

// What does not depend on layouts. [O, C/groups, kh, kw] weights of several groups are seen as
// [groups, O/groups, C/groups, kh, kw], which is the same row-major order.
struct Convolution {
  ops::Window window;
  Shape weight_view;
  std::int64_t channels = 0;  // of x
  bool bias = false;
  dnnl_alg_kind_t algorithm = dnnl_convolution_direct;  // as the op's attribute `algorithm` says
  DType bias_type = DType::f32;                         // that of the images

  Convolution(const OpView& op, const Shape& x, const Shape& w, bool has_bias);

  PrimitiveDesc forward(const ConvolutionWay& way, dnnl_engine_t engine) const;
  PrimitiveDesc grad_input(const ConvolutionWay& way, dnnl_engine_t engine) const;
  PrimitiveDesc grad_weights(const ConvolutionWay& way, dnnl_engine_t engine) const;

  Descriptor bias_descriptor() const;
};

constexpr const char* kDirect = "direct";  // the usual algorithm
constexpr const char* kWinograd =
    "winograd";  // Winograd's minimal filtering: 3x3, stride 1, f32; rounds more

}  // namespace fleetrun::runtime::cpu
