// Inner products of oneDNN, y [M, O] = x [M, C] w [O, C]^T (+ bias [O]), and their gradients, as problems: empty where oneDNN has
// nothing for these layouts.
#pragma once
#include <dnnl_types.h>

#include "runtime/kernels/cpu/onednn/primitive.h"

namespace fleetrun::runtime::cpu {

// With fewer rows oneDNN's kernels for AVX2 add up the products of a sum in another order. The answer about an image must have the same
// bits in every batch, so no forward product has fewer rows.
inline constexpr dnnl_dim_t kLeastRows = 4;

// `bias`: null without one.
PrimitiveDesc inner_product(const Way& way, const Descriptor* bias, dnnl_engine_t engine);
PrimitiveDesc inner_product_grad_input(const Way& way, dnnl_engine_t engine);
PrimitiveDesc inner_product_grad_weights(const Way& way, const Descriptor* bias, dnnl_engine_t engine);

}  // namespace fleetrun::runtime::cpu
