// strategy.amp's loss scaling, and gradient_merge.
#include "cuda/plugin/op_tensors.h"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

std::unique_ptr<Kernel> make_scale_loss(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [x = op.input_id("x"), scale = op.input_id("scale"), y = op.output_id("y")](
                           const RunContext& context, cudaStream_t stream) {
                         scale_loss(at(context, x), at(context, scale), at(context, y), stream);
                       });
}

// The gradients of one type: usually all.
struct Checked {
  Number type;
  OpTensors<2> tensors;
};

std::vector<Checked> checked_by(const OpView& op) {
  std::vector<Checked> all;
  for (const Number type : {Number::f32, Number::f16, Number::bf16}) all.push_back({type, {}});
  const auto x = op.input_ids("x"), out = op.output_ids("out");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Value& value = op.program().value(x[i]);
    const Number type = number_of(op, value);
    for (Checked& checked : all)
      if (checked.type == type) checked.tensors.add({x[i], out[i]}, runtime::count_of(value.shape));
  }
  std::erase_if(all, [](const Checked& checked) { return checked.tensors.size() == 0; });
  return all;
}

std::unique_ptr<Kernel> make_check(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [all = checked_by(op), scale = op.input_id("scale"), found = op.input_id("found")](
                           const RunContext& context, cudaStream_t stream) mutable {
                         for (Checked& checked : all)
                           check_finite_and_unscale(checked.tensors.in(context), checked.type,
                                                    at(context, scale), at(context, found), stream);
                       });
}

// Each as it lies, in f32.
LayoutChoice choose_check(const LayoutQuery& query, Device& device) {
  LayoutChoice choice = runtime::as_they_lie(query, device);
  const auto x = query.op.input_ids("x");
  for (std::size_t i = 0; i < x.size(); ++i)
    choice.outputs[i] = layout_in(query.op.program().value(x[i]), DType::f32);
  return choice;
}

std::unique_ptr<Kernel> make_update(const OpView& op, Device& device) {
  const auto number = [&](const char* name) { return static_cast<float>(op.number(name)); };
  const LossScaling settings = {.incr_every = number("incr_every_n_steps"),
                                .decr_every = number("decr_every_n_nan_or_inf"),
                                .incr_ratio = number("incr_ratio"),
                                .decr_ratio = number("decr_ratio")};
  return simple_kernel(
      op, device,
      [settings, found = op.input_id("found"), scale = op.input_id("scale"), good = op.input_id("good"),
       bad = op.input_id("bad")](const RunContext& context, cudaStream_t stream) {
        update_loss_scaling({at(context, found), at(context, scale), at(context, good), at(context, bad)},
                            settings, stream);
      });
}

std::unique_ptr<Kernel> make_zero(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [tensors = OpTensors<1>(op, {"grad"}), found = op.input_id("found")](
                           const RunContext& context, cudaStream_t stream) mutable {
                         zero_on_overflow(tensors.in(context), at(context, found), stream);
                       });
}

std::unique_ptr<Kernel> make_merge(const OpView& op, Device& device) {
  OpTensors<3> tensors;
  tensors.add({op.input_id("merged"), op.input_id("grad"), op.output_id("out")},
              elements_of(op, op.input("merged")));
  return simple_kernel(
      op, device,
      [tensors = std::move(tensors), type = number_of(op, op.input("grad")),
       steps = static_cast<std::uint64_t>(op.integer("k_steps")),
       factor = static_cast<float>(op.number("scale"))](const RunContext& context,
                                                        cudaStream_t stream) mutable {
        merge_gradient(tensors.in(context), type, {factor, (context.merge_step + 1) % steps == 0}, stream);
      });
}

// All as the sum lies, which lies as the parameter.
LayoutChoice choose_merge(const LayoutQuery& query, Device&) {
  const Value& merged = query.op.input("merged");
  const runtime::Layout grad = layout_in(merged, query.op.input("grad").dtype);
  return {{grad, merged.layout}, {grad, merged.layout}};
}

}  // namespace

KernelDef scale_loss_kernel() { return {.make = make_scale_loss}; }
KernelDef check_finite_and_unscale_kernel() { return {.choose_layouts = choose_check, .make = make_check}; }
KernelDef update_loss_scaling_kernel() { return {.make = make_update}; }
KernelDef zero_on_overflow_kernel() { return {.choose_layouts = runtime::as_they_lie, .make = make_zero}; }
KernelDef merge_gradient_kernel() {
  return {.choose_layouts = choose_merge,
          .make = make_merge,
          .decided_each_run = "gradient_merge updates the parameters in some steps only"};
}

}  // namespace fleetrun::cuda
