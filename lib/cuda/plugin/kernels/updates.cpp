// The optimizers: one launch for each parameter of the op's list.
#include <vector>

#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

// One parameter with what belongs to it, by OpDef's names.
struct Updated {
  ValueId param, grad;
  std::int64_t count;
  std::vector<ValueId> states;
};

std::vector<Updated> updated_by(const OpView& op, const std::vector<std::string>& states) {
  std::vector<Updated> all;
  for (std::size_t i = 0; i < op.input_ids("param").size(); ++i) {
    const ValueId param = op.input_ids("param")[i];
    all.push_back({param, op.input_ids("grad")[i], elements_of(op, op.program().value(param)), {}});
    for (const std::string& state : states) all.back().states.push_back(op.input_ids(state)[i]);
  }
  return all;
}

std::unique_ptr<Kernel> make_sgd(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [all = updated_by(op, {}), rate = op.input_id("learning_rate"),
                        decay = static_cast<float>(op.number("weight_decay"))](const RunContext& context,
                                                                               cudaStream_t stream) {
                         for (const Updated& one : all)
                           sgd(at(context, one.param), at(context, one.grad), at(context, rate), decay,
                               one.count, stream);
                       });
}

std::unique_ptr<Kernel> make_momentum(const OpView& op, Device& device) {
  const Momentum settings = {.mu = static_cast<float>(op.number("mu")),
                             .decay = static_cast<float>(op.number("weight_decay")),
                             .nesterov = op.flag("use_nesterov")};
  return simple_kernel(op, device,
                       [settings, all = updated_by(op, {"velocity"}), rate = op.input_id("learning_rate")](
                           const RunContext& context, cudaStream_t stream) {
                         for (const Updated& one : all)
                           momentum(at(context, one.param), at(context, one.states[0]), at(context, one.grad),
                                    at(context, rate), settings, one.count, stream);
                       });
}

std::unique_ptr<Kernel> make_adam(const OpView& op, Device& device) {
  const Adam settings = {.beta1 = static_cast<float>(op.number("beta1")),
                         .beta2 = static_cast<float>(op.number("beta2")),
                         .epsilon = static_cast<float>(op.number("epsilon")),
                         .decay = static_cast<float>(op.number("weight_decay"))};
  return simple_kernel(op, device,
                       [settings, all = updated_by(op, {"moment1", "moment2", "beta1_pow", "beta2_pow"}),
                        rate = op.input_id("learning_rate")](const RunContext& context, cudaStream_t stream) {
                         for (const Updated& one : all) {
                           const AdamArrays arrays = {at(context, one.param),     at(context, one.states[0]),
                                                      at(context, one.states[1]), at(context, one.states[2]),
                                                      at(context, one.states[3]), at(context, one.grad),
                                                      at(context, rate)};
                           adam(arrays, settings, one.count, stream);
                         }
                       });
}

}  // namespace

KernelDef sgd_kernel() { return {.choose_layouts = runtime::as_they_lie, .make = make_sgd}; }
KernelDef momentum_kernel() { return {.choose_layouts = runtime::as_they_lie, .make = make_momentum}; }
KernelDef adam_kernel() { return {.choose_layouts = runtime::as_they_lie, .make = make_adam}; }

}  // namespace fleetrun::cuda
