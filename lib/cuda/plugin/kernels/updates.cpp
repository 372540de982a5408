// The optimizers, and the average of the weights.
#include "cuda/plugin/updates.h"
#include "cuda/plugin/op_tensors.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

float number(const OpView& op, const char* attribute) { return static_cast<float>(op.number(attribute)); }

std::unique_ptr<Kernel> make_sgd(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [tensors = OpTensors<2>(op, {"param", "grad"}), rate = op.input_id("learning_rate"),
       decay = number(op, "weight_decay")](const RunContext& context, cudaStream_t stream) mutable {
        sgd(tensors.in(context), at(context, rate), decay, stream);
      });
}

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device& device) {
  const Momentum settings = {
      .mu = number(op, "mu"), .decay = number(op, "weight_decay"), .nesterov = op.flag("use_nesterov")};
  return simple_kernel(
      op, device,
      [settings, tensors = OpTensors<3>(op, {"param", "velocity", "grad"}),
       rate = op.input_id("learning_rate")](const RunContext& context, cudaStream_t stream) mutable {
        momentum(tensors.in(context), at(context, rate), settings, stream);
      });
}

OpTensors<6> with_moments(const OpView& op) {
  return {op, {"param", "moment1", "moment2", "grad", "beta1_pow", "beta2_pow"}};
}

template <bool decays_weights>
std::unique_ptr<Kernel> make_adam(const OpView& op, Device& device) {
  const Adam settings = {.beta1 = number(op, "beta1"),
                         .beta2 = number(op, "beta2"),
                         .rest1 = static_cast<float>(1.0 - op.number("beta1")),
                         .rest2 = static_cast<float>(1.0 - op.number("beta2")),
                         .epsilon = op.number("epsilon"),
                         .decay = number(op, "weight_decay"),
                         .decays_weights = decays_weights};
  return simple_kernel(op, device,
                       [settings, tensors = with_moments(op), rate = op.input_id("learning_rate")](
                           const RunContext& context, cudaStream_t stream) mutable {
                         adam(tensors.in(context), at(context, rate), settings, stream);
                       });
}

std::unique_ptr<Kernel> make_lars(const OpView& op, Device& device) {
  const Lars settings = {.coeff = op.number("lars_coeff"),
                         .decay = op.number("weight_decay"),
                         .epsilon = op.number("epsilon"),
                         .mu = number(op, "mu")};
  OpTensors<3> tensors(op, {"param", "velocity", "grad"});
  const std::size_t scratch = norm_scratch_bytes(tensors.size(), tensors.elements());
  return scratch_kernel(op, device, scratch,
                        [settings, tensors = std::move(tensors), rate = op.input_id("learning_rate")](
                            const RunContext& context, cudaStream_t stream) mutable {
                          lars(tensors.in(context), at(context, rate), settings, context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_lamb(const OpView& op, Device& device) {
  const Lamb settings = {.beta1 = number(op, "beta1"),
                         .beta2 = number(op, "beta2"),
                         .rest1 = static_cast<float>(1.0 - op.number("beta1")),
                         .rest2 = static_cast<float>(1.0 - op.number("beta2")),
                         .epsilon = number(op, "epsilon"),
                         .decay = number(op, "weight_decay")};
  OpTensors<6> tensors = with_moments(op);
  const std::size_t scratch = norm_scratch_bytes(tensors.size(), tensors.elements());
  return scratch_kernel(op, device, scratch,
                        [settings, tensors = std::move(tensors), rate = op.input_id("learning_rate")](
                            const RunContext& context, cudaStream_t stream) mutable {
                          lamb(tensors.in(context), at(context, rate), settings, context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_average(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [tensors = OpTensors<2>(op, {"average", "param"}), decay = number(op, "decay"),
       power = op.input_id("decay_pow")](const RunContext& context, cudaStream_t stream) mutable {
        average_weights(tensors.in(context), at(context, power), decay, stream);
      });
}

KernelDef as_they_lie(std::unique_ptr<Kernel> (*make)(const OpView&, Device&)) {
  return {.choose_layouts = runtime::as_they_lie, .make = make};
}

}  // namespace

KernelDef sgd_kernel() { return as_they_lie(make_sgd); }
KernelDef momentum_kernel() { return as_they_lie(make_momentum); }
KernelDef adam_kernel() { return as_they_lie(make_adam<false>); }
KernelDef adamw_kernel() { return as_they_lie(make_adam<true>); }
KernelDef lars_kernel() { return as_they_lie(make_lars); }
KernelDef lamb_kernel() { return as_they_lie(make_lamb); }
KernelDef average_weights_kernel() { return as_they_lie(make_average); }

}  // namespace fleetrun::cuda
