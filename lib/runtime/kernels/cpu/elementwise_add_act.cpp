#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void relu_of_sum(const float* x, const float* y, float* out, float, float,
                                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = x[i] + y[i];
    out[i] = sum < 0.0F ? 0.0F : sum;  // NaN stays NaN
  }
}

FLEETRUN_VECTOR_LOOP void relu_of_y(const float* x, const float* y, float* out, float, float,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] + (y[i] < 0.0F ? 0.0F : y[i]);
}

FLEETRUN_VECTOR_LOOP void scale_of_sum(const float* x, const float* y, float* out, float scale, float bias,
                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = scale * (x[i] + y[i]) + bias;
}

FLEETRUN_VECTOR_LOOP void scale_of_y(const float* x, const float* y, float* out, float scale, float bias,
                                     std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] + (scale * y[i] + bias);
}

FLEETRUN_VECTOR_LOOP void where_positive(const float* y, const float* dy, float* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

FLEETRUN_VECTOR_LOOP void sum_where_positive(const float* y, const float* dy, const float* more, float* dx,
                                             std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = dy[i] + more[i];
    dx[i] = y[i] > 0.0F ? sum : 0.0F;
  }
}

using Loop = void (*)(const float*, const float*, float*, float, float, std::int64_t);

Loop loop_of(const OpView& op) {
  const bool of_sum = op.text("of") == "sum";
  if (op.text("act") == "relu") return of_sum ? vector_clones<relu_of_sum> : vector_clones<relu_of_y>;
  return of_sum ? vector_clones<scale_of_sum> : vector_clones<scale_of_y>;
}

std::unique_ptr<Kernel> make_add_act(const OpView& op, Device&) {
  const bool scales = op.text("act") == "scale";
  return elementwise_kernel(
      op, std::array{op.input_id("x"), op.input_id("y")}, op.output_id("out"),
      [loop = loop_of(op), scale = scales ? static_cast<float>(op.number("scale")) : 0.0F,
       bias = scales ? static_cast<float>(op.number("bias")) : 0.0F](
          const auto& in, float* out, std::int64_t count) { loop(in[0], in[1], out, scale, bias, count); });
}

std::unique_ptr<Kernel> make_add_act_grad(const OpView& op, Device&) {
  const ValueId y = op.input_id("y"), dy = op.input_id("dy"), dx = op.output_id("dx");
  if (!op.has_input("more"))
    return elementwise_kernel(op, std::array{y, dy}, dx, [](const auto& in, float* out, std::int64_t count) {
      vector_clones<where_positive>(in[0], in[1], out, count);
    });
  return elementwise_kernel(op, std::array{y, dy, op.input_id("more")}, dx,
                            [](const auto& in, float* out, std::int64_t count) {
                              vector_clones<sum_where_positive>(in[0], in[1], in[2], out, count);
                            });
}

LayoutChoice choose_add_act(const LayoutQuery& query, Device& device) {
  const LayoutChoice choice = like_the_blocked(query, device);
  const bool moves = query.op.text("act") == "scale" && query.op.number("bias") != 0.0;
  return moves ? unless_padded(query, choice) : choice;
}

}  // namespace

KernelDef elementwise_add_act_kernel() { return {.choose_layouts = choose_add_act, .make = make_add_act}; }
KernelDef elementwise_add_act_grad_kernel() { return {.choose_layouts = like_y, .make = make_add_act_grad}; }

}  // namespace fleetrun::runtime::cpu
