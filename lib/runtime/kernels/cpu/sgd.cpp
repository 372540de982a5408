#include "base/vector_clones.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Update {
  float* param;
  const float* grad;
  float rate, decay;
};

FLEETRUN_VECTOR_CLONES void update_range(const Update& with, std::int64_t begin, std::int64_t end) {
  float* __restrict const param = with.param;
  const float* __restrict const grad = with.grad;
  const float rate = with.rate, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) param[i] -= rate * (grad[i] + decay * param[i]);
}

std::unique_ptr<Kernel> make_sgd(const OpView& op, Device&) {
  return simple_kernel([param = op.input_id("param"), grad = op.input_id("grad"),
                        rate = op.input_id("learning_rate"),
                        decay = static_cast<float>(op.number("weight_decay")),
                        count = elements_of(op, op.input("param"))](const RunContext& context) {
    const Update with = {at(context, param), at(context, grad), *at(context, rate), decay};
    parallel_for(count, kElementsPerThread,
                 [&](std::int64_t begin, std::int64_t end) { update_range(with, begin, end); });
  });
}

LayoutChoice like_param(const LayoutQuery& query, Device&) { return like_input(query, "param"); }

}  // namespace

KernelDef sgd_kernel() { return {.choose_layouts = like_param, .make = make_sgd}; }

}  // namespace fleetrun::runtime::cpu
