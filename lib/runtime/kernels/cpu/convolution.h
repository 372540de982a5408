// The three convolutions of conv2d and its gradients as problems of oneDNN, and how to lay them out.
#pragma once
#include <dnnl_types.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/kernels/cpu/onednn/primitive.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::cpu {

enum class Algorithm {
  direct,    // the usual one
  winograd,  // Winograd's minimal filtering: 3x3, stride 1, f32; rounds more
  gemm,      // one product of matrices (patches.h): images with channels last
};

std::string name_of(Algorithm algorithm);  // as the op's attribute `algorithm` says

// What does not depend on layouts. [O, C/groups, kh, kw] weights of several groups are seen as
// [groups, O/groups, C/groups, kh, kw], which is the same row-major order.
struct Convolution {
  ops::Window window;
  Shape weight_view;
  std::int64_t channels = 0;  // of x
  bool bias = false;
  Algorithm algorithm = Algorithm::direct;
  DType bias_type = DType::f32;  // that of the images

  Convolution(const OpView& op, const Shape& x, const Shape& w, bool has_bias);

  // Empty where oneDNN has nothing for these layouts by this algorithm.
  PrimitiveDesc forward(const Way& way, dnnl_engine_t engine) const;
  PrimitiveDesc grad_input(const Way& way, dnnl_engine_t engine) const;
  PrimitiveDesc grad_weights(const Way& way, dnnl_engine_t engine) const;

  // `way` as the primitive sees it, for its arguments: as matrices by gemm.
  Way seen(const Way& way) const;
  // `arguments`: the primitive's, as seen.
  std::unique_ptr<Kernel> make(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                               const std::vector<PrimitiveArgument>& arguments, const Way& way) const;
  // How image or weight lies in the graph that a primitive wants as `what`.
  Layout image_layout(const Value& image, const PrimitiveDesc& desc, dnnl_query_t what) const;
  Layout weight_layout(const PrimitiveDesc& desc, dnnl_query_t what) const;

  Descriptor bias_descriptor() const;

 private:
  // By gemm: what `describe` makes of the matrices; empty where there are none.
  template <typename Describe>
  PrimitiveDesc product(const Way& way, const Describe& describe) const;
};

}  // namespace fleetrun::runtime::cpu
