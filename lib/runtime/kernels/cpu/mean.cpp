#include <algorithm>
#include <numeric>

#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_mean(const OpView& op, Device&) {
  return simple_kernel([x = op.input_id("x"), y = op.output_id("y"),
                        count = elements_of(op, op.input("x"))](const RunContext& context) {
    const float* values = at(context, x);
    *at(context, y) =
        static_cast<float>(std::accumulate(values, values + count, 0.0) / static_cast<double>(count));
  });
}

std::unique_ptr<Kernel> make_mean_grad(const OpView& op, Device&) {
  return simple_kernel([dy = op.input_id("dy"), dx = op.output_id("dx"),
                        count = elements_of(op, op.output("dx"))](const RunContext& context) {
    std::fill_n(at(context, dx), count, *at(context, dy) / static_cast<float>(count));
  });
}

std::unique_ptr<Kernel> make_weighted_mean(const OpView& op, Device&) {
  return simple_kernel([x = op.input_id("x"), weight = op.input_id("weight"), y = op.output_id("y"),
                        count = elements_of(op, op.input("x"))](const RunContext& context) {
    const float *values = at(context, x), *weights = at(context, weight);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(weights[i]);
    *at(context, y) = static_cast<float>(sum / static_cast<double>(count));
  });
}

std::unique_ptr<Kernel> make_weighted_mean_grad(const OpView& op, Device&) {
  return simple_kernel([dy = op.input_id("dy"), factor = op.input_id("factor"), out = op.output_id("dx"),
                        count = elements_of(op, op.output("dx"))](const RunContext& context) {
    const float each = *at(context, dy) / static_cast<float>(count);
    const float* factors = at(context, factor);
    std::transform(factors, factors + count, at(context, out), [each](float one) { return each * one; });
  });
}

}  // namespace

KernelDef mean_kernel() { return {.make = make_mean}; }
KernelDef mean_grad_kernel() { return {.make = make_mean_grad}; }
KernelDef weighted_mean_kernel() { return {.make = make_weighted_mean}; }
KernelDef weighted_mean_grad_kernel() { return {.make = make_weighted_mean_grad}; }

}  // namespace fleetrun::runtime::cpu
