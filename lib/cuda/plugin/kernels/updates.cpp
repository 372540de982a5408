// The optimizers.
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

LayoutChoice like_param(const LayoutQuery& query, Device&) { return runtime::like_input(query, "param"); }

std::unique_ptr<Kernel> make_sgd(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [param = op.input_id("param"), grad = op.input_id("grad"), rate = op.input_id("learning_rate"),
       decay = static_cast<float>(op.number("weight_decay")),
       count = elements_of(op, op.input("param"))](const RunContext& context, cudaStream_t stream) {
        sgd(at(context, param), at(context, grad), at(context, rate), decay, count, stream);
      });
}

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device& device) {
  const Momentum settings = {.mu = static_cast<float>(op.number("mu")),
                             .decay = static_cast<float>(op.number("weight_decay")),
                             .nesterov = op.flag("use_nesterov")};
  return simple_kernel(
      op, device,
      [settings, param = op.input_id("param"), velocity = op.input_id("velocity"), grad = op.input_id("grad"),
       rate = op.input_id("learning_rate"),
       count = elements_of(op, op.input("param"))](const RunContext& context, cudaStream_t stream) {
        momentum(at(context, param), at(context, velocity), at(context, grad), at(context, rate), settings,
                 count, stream);
      });
}

std::unique_ptr<Kernel> make_adam(const OpView& op, Device& device) {
  const Adam settings = {.beta1 = static_cast<float>(op.number("beta1")),
                         .beta2 = static_cast<float>(op.number("beta2")),
                         .epsilon = static_cast<float>(op.number("epsilon")),
                         .decay = static_cast<float>(op.number("weight_decay"))};
  return simple_kernel(
      op, device,
      [settings, param = op.input_id("param"), moment1 = op.input_id("moment1"),
       moment2 = op.input_id("moment2"), pow1 = op.input_id("beta1_pow"), pow2 = op.input_id("beta2_pow"),
       grad = op.input_id("grad"), rate = op.input_id("learning_rate"),
       count = elements_of(op, op.input("param"))](const RunContext& context, cudaStream_t stream) {
        const AdamArrays arrays = {at(context, param), at(context, moment1), at(context, moment2),
                                   at(context, pow1),  at(context, pow2),    at(context, grad),
                                   at(context, rate)};
        adam(arrays, settings, count, stream);
      });
}

}  // namespace

KernelDef sgd_kernel() { return {.choose_layouts = like_param, .make = make_sgd}; }
KernelDef momentum_kernel() { return {.choose_layouts = like_param, .make = make_momentum}; }
KernelDef adam_kernel() { return {.choose_layouts = like_param, .make = make_adam}; }

}  // namespace fleetrun::cuda
