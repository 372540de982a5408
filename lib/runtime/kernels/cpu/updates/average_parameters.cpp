#include "base/error/error.h"
#include "base/number/vector_clones.h"
#include "comm/collective/communicator.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/layout_choice.h"
#include "runtime/ops/rules/average_op.h"

namespace fleetrun::runtime::cpu {
namespace {

using ops::AverageSchedule;

FLEETRUN_VECTOR_LOOP void difference_range(const float* snapshot, const float* param, float* difference,
                                           std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) difference[i] = snapshot[i] - param[i];
}

FLEETRUN_VECTOR_LOOP void take_mean_range(const float* difference, float share, float* snapshot, float* param,
                                          std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float mean = snapshot[i] - share * difference[i];
    param[i] = mean;
    snapshot[i] = mean;
  }
}

class AverageParameters : public Kernel {
 public:
  explicit AverageParameters(const OpView& op)
      : op_(ops::read_average_op(op, 1, [&](const Value& value) { return elements_of(op, value); })) {}

  std::size_t scratch_bytes() const override { return op_.message_bytes(); }

  void run(const RunContext& context) override {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, "average_parameters runs without a communicator");
    auto* const schedule = op_.schedule == kNone ? nullptr : at<AverageSchedule>(context, op_.schedule);
    const std::int64_t step = static_cast<std::int64_t>(context.step) + 1;
    if (!(schedule == nullptr ? is_average_due(step, op_.steps) : schedule->is_due(step, op_.steps))) return;
    auto* const message = static_cast<float*>(context.scratch);
    const float share = 1.0F / static_cast<float>(context.communicator->size());
    each(context, [&](const ops::AveragedTensor& piece, float* param, float* snapshot) {
      vector_clones<difference_range>(snapshot, param, message + piece.begin, piece.count);
    });
    message[op_.elements] = op_.loss == kNone ? 0 : *at(context, op_.loss);
    context.communicator->all_reduce({message, static_cast<std::size_t>(op_.elements + 1), DType::f32},
                                     comm::ReduceOp::sum);
    each(context, [&](const ops::AveragedTensor& piece, float* param, float* snapshot) {
      vector_clones<take_mean_range>(message + piece.begin, share, snapshot, param, piece.count);
    });
    if (schedule != nullptr)
      schedule->follow(message[op_.elements] * share, *at(context, op_.rate), op_.steps);
  }

 private:
  template <typename Body>
  void each(const RunContext& context, Body&& body) const {
    for (const ops::AveragedTensor& piece : op_.tensors)
      parallel_for(piece.count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
        body(ops::AveragedTensor{piece.param, piece.snapshot, piece.begin + begin, end - begin},
             at(context, piece.param) + begin, at(context, piece.snapshot) + begin);
      });
  }

  ops::AverageOp op_;
};

}  // namespace

KernelDef average_parameters_kernel() {
  return {.choose_layouts = as_they_lie, .make = make_kernel<AverageParameters>};
}

}  // namespace fleetrun::runtime::cpu
