#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/elementwise_steps.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP float relu_of_sum(float x, float y) { return relu_of(x + y); }
FLEETRUN_VECTOR_LOOP float relu_of_y(float x, float y) { return x + relu_of(y); }
FLEETRUN_VECTOR_LOOP float scale_of_sum(float x, float y, float scale, float bias) {
  return scale_of(x + y, scale, bias);
}
FLEETRUN_VECTOR_LOOP float scale_of_y(float x, float y, float scale, float bias) {
  return x + scale_of(y, scale, bias);
}
FLEETRUN_VECTOR_LOOP float relu_grad_of_sum(float y, float dy, float more) {
  return relu_grad_of(y, dy + more);
}

std::unique_ptr<Kernel> make_add_act(const OpView& op, Device&) {
  const bool of_sum = op.text("of") == "sum";
  if (op.text("act") == "relu")
    return of_sum ? elementwise_kernel<relu_of_sum>(op) : elementwise_kernel<relu_of_y>(op);
  const double scale = op.number("scale"), bias = op.number("bias");
  return of_sum ? elementwise_kernel<scale_of_sum>(op, scale, bias)
                : elementwise_kernel<scale_of_y>(op, scale, bias);
}

std::unique_ptr<Kernel> make_add_act_grad(const OpView& op, Device&) {
  return op.has_input("more") ? elementwise_kernel<relu_grad_of_sum>(op)
                              : elementwise_kernel<relu_grad_of>(op);
}

LayoutChoice choose_add_act(const LayoutQuery& query, Device& device) {
  const LayoutChoice choice = like_the_blocked(query, device);
  const bool moves = query.op.text("act") == "scale" && query.op.number("bias") != 0.0;
  return moves ? unless_padded(query, choice) : choice;
}

}  // namespace

KernelDef elementwise_add_act_kernel() { return {.choose_layouts = choose_add_act, .make = make_add_act}; }
KernelDef elementwise_add_act_grad_kernel() {
  return {.choose_layouts = like_first_input, .make = make_add_act_grad};
}

}  // namespace fleetrun::runtime::cpu
