// Limits of gradients: by value, by their own norms, and by the norm of all of them.
#include "cuda/plugin/op_tensors.h"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

std::unique_ptr<Kernel> make_clip_by_value(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [tensors = OpTensors<1>(op, {"grad"}), limit = static_cast<float>(op.number("limit"))](
                           const RunContext& context, cudaStream_t stream) mutable {
                         clip_by_value(tensors.in(context), limit, stream);
                       });
}

std::unique_ptr<Kernel> make_clip_by_norm(const OpView& op, Device& device) {
  OpTensors<1> tensors(op, {"grad"});
  const std::size_t scratch = norm_scratch_bytes(tensors.size(), tensors.elements());
  return scratch_kernel(op, device, scratch,
                        [tensors = std::move(tensors), limit = op.number("limit")](
                            const RunContext& context, cudaStream_t stream) mutable {
                          clip_by_norm(tensors.in(context), limit, context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_gradient_norms(const OpView& op, Device& device) {
  OpTensors<1> tensors(op, {"grad"});
  const std::size_t scratch = norm_scratch_bytes(tensors.size(), tensors.elements());
  return scratch_kernel(
      op, device, scratch,
      [tensors = std::move(tensors), norms = op.input_id("norms"), first = op.integer("first")](
          const RunContext& context, cudaStream_t stream) mutable {
        gradient_norms(tensors.in(context), at(context, norms) + first, context.scratch, stream);
      });
}

std::unique_ptr<Kernel> make_clip_by_global_norm(const OpView& op, Device& device) {
  return scratch_kernel(op, device, sizeof(float),
                        [tensors = OpTensors<1>(op, {"grad"}), norms = op.input_id("norms"),
                         count = elements_of(op, op.input("norms")),
                         limit = op.number("limit")](const RunContext& context, cudaStream_t stream) mutable {
                          clip_by_global_norm(tensors.in(context), {at(context, norms), count, limit},
                                              static_cast<float*>(context.scratch), stream);
                        });
}

}  // namespace

KernelDef clip_by_value_kernel() {
  return {.choose_layouts = runtime::as_they_lie, .make = make_clip_by_value};
}
KernelDef clip_by_norm_kernel() {
  return {.choose_layouts = runtime::as_they_lie, .make = make_clip_by_norm};
}
KernelDef gradient_norms_kernel() {
  return {.choose_layouts = runtime::as_they_lie, .make = make_gradient_norms};
}
KernelDef clip_by_global_norm_kernel() {
  return {.choose_layouts = runtime::as_they_lie, .make = make_clip_by_global_norm};
}

}  // namespace fleetrun::cuda
