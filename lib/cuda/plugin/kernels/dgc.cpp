#include "cuda/plugin/dgc.h"

#include <vector>

#include "cuda/plugin/simple_kernel.h"
#include "runtime/ops/rules/sparse_schedule.h"

namespace fleetrun::cuda {

KernelDef momentum_kernel();

namespace {

using runtime::Device;
using runtime::ops::SparseSchedule;

std::int64_t kept_in(const SparseSchedule& schedule, const RunContext& context) {
  return schedule.kept_in(static_cast<std::int64_t>(context.step));
}

std::unique_ptr<Kernel> make_select(const OpView& op, Device& device) {
  const std::int64_t elements = narrow(op, elements_of(op, op.input("param")));
  const DgcSettings settings = {.mu = static_cast<float>(op.number("mu")),
                                .decay = static_cast<float>(op.number("weight_decay")),
                                .nesterov = op.flag("use_nesterov"),
                                .ranks = static_cast<double>(op.integer("ranks")),
                                .limit = op.number("limit")};
  return scratch_kernel(op, device, bytes_of_dgc(elements),
                        [elements, settings, schedule = runtime::ops::sparse_schedule_of(op, elements),
                         param = op.input_id("param"), grad = op.input_id("grad"),
                         velocity = op.input_id("velocity"), residual = op.input_id("residual"),
                         message = op.output_id("message")](const RunContext& context, cudaStream_t stream) {
                          const std::int64_t kept = kept_in(schedule, context);
                          if (kept == 0) return;
                          const DgcArrays arrays = {at(context, param), at(context, grad),
                                                    at(context, velocity), at(context, residual),
                                                    at<std::int32_t>(context, message)};
                          dgc_select(arrays, settings, kept, elements, context.scratch, stream);
                        });
}

std::unique_ptr<Kernel> make_scatter(const OpView& op, Device& device) {
  const std::int64_t elements = narrow(op, elements_of(op, op.input("grad")));
  return simple_kernel(op, device,
                       [elements, schedule = runtime::ops::sparse_schedule_of(op, elements),
                        ranks = narrow(op, op.integer("ranks")), grad = op.input_id("grad"),
                        gathered = op.input_id("gathered")](const RunContext& context, cudaStream_t stream) {
                         const std::int64_t kept = kept_in(schedule, context);
                         if (kept == 0) return;
                         dgc_scatter(at(context, grad), at<std::int32_t>(context, gathered), ranks, kept,
                                     elements, stream);
                       });
}

struct Updated {
  ValueId param, grad;
  std::int64_t count;
};

class DgcMomentum : public Kernel {
 public:
  DgcMomentum(const OpView& op, Device& device)
      : device_(as_cuda(device)),
        momentum_(momentum_kernel().make(op, device)),
        rate_(op.input_id("learning_rate")),
        begin_step_(static_cast<std::uint64_t>(op.integer("rampup_begin_step"))) {
    for (std::size_t i = 0; i < op.input_ids("param").size(); ++i) {
      const ValueId param = op.input_ids("param")[i];
      all_.push_back({param, op.input_ids("grad")[i], elements_of(op, op.program().value(param))});
    }
  }

  std::size_t scratch_bytes() const override { return momentum_->scratch_bytes(); }

  void run(const RunContext& context) override {
    if (context.step < begin_step_) return momentum_->run(context);
    for (const Updated& one : all_)
      dgc_sgd(at(context, one.param), at(context, one.grad), at(context, rate_), one.count,
              device_.stream(context.stream));
    check(cudaGetLastError(), "starting dgc_momentum");
  }

 private:
  CudaDevice& device_;
  std::unique_ptr<Kernel> momentum_;
  ValueId rate_;
  std::uint64_t begin_step_;
  std::vector<Updated> all_;
};

std::unique_ptr<Kernel> make_dgc_momentum(const OpView& op, Device& device) {
  return std::make_unique<DgcMomentum>(op, device);
}

LayoutChoice like_param(const LayoutQuery& query, Device&) { return runtime::like_input(query, "param"); }

constexpr const char* kSchedule = "dgc sends fewer elements from step to step";

}  // namespace

KernelDef dgc_select_kernel() {
  return {.choose_layouts = like_param, .make = make_select, .decided_each_run = kSchedule};
}
KernelDef dgc_scatter_kernel() {
  return {.choose_layouts = runtime::as_they_lie, .make = make_scatter, .decided_each_run = kSchedule};
}
KernelDef dgc_momentum_kernel() {
  return {.choose_layouts = runtime::as_they_lie, .make = make_dgc_momentum, .decided_each_run = kSchedule};
}

}  // namespace fleetrun::cuda
