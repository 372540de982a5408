#include "runtime/kernels/cpu/onednn/inner_product.h"

#include <dnnl.h>

namespace fleetrun::runtime::cpu {

PrimitiveDesc inner_product(const Way& way, const Descriptor* bias, dnnl_engine_t engine) {
  dnnl_inner_product_desc_t desc;
  check(dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_training, &way.x, &way.w, bias, &way.y),
        "describing an inner product");
  return describe_primitive(&desc, engine);
}

PrimitiveDesc inner_product_grad_input(const Way& way, dnnl_engine_t engine) {
  dnnl_inner_product_desc_t desc;
  check(dnnl_inner_product_backward_data_desc_init(&desc, &way.x, &way.w, &way.y),
        "describing the gradient of an inner product's input");
  return describe_primitive(&desc, engine, inner_product(way, nullptr, engine).get());
}

PrimitiveDesc inner_product_grad_weights(const Way& way, const Descriptor* bias, dnnl_engine_t engine) {
  dnnl_inner_product_desc_t desc;
  check(dnnl_inner_product_backward_weights_desc_init(&desc, &way.x, &way.w, bias, &way.y),
        "describing the gradient of an inner product's weight");
  return describe_primitive(&desc, engine, inner_product(way, bias, engine).get());
}

}  // namespace fleetrun::runtime::cpu
