// Inner products of oneDNN, y [M, O] = x [M, C] w [O, C]^T (+ bias [O]), and their gradients, as problems: empty where oneDNN has
// nothing for these layouts.
#pragma once
#include <dnnl_types.h>

#include "runtime/kernels/cpu/onednn/primitive.h"

namespace fleetrun::runtime::cpu {

// `bias`: null without one.
PrimitiveDesc inner_product(const Way& way, const Descriptor* bias, dnnl_engine_t engine);
PrimitiveDesc inner_product_grad_input(const Way& way, dnnl_engine_t engine);
PrimitiveDesc inner_product_grad_weights(const Way& way, const Descriptor* bias, dnnl_engine_t engine);

}  // namespace fleetrun::runtime::cpu
