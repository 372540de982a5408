#include <vector>

#include "base/error/error.h"
#include "base/number/vector_clones.h"
#include "comm/collective/communicator.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/layout_choice.h"
#include "runtime/ops/rules/average_schedule.h"

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
      : steps_{op.integer("begin_step"), op.integer("k_steps")},
        schedule_(op.input_id("schedule")),
        loss_(op.input_id("loss")),
        rate_(op.input_id("learning_rate")) {
    const auto params = op.input_ids("param"), snapshots = op.input_ids("snapshot");
    for (std::size_t i = 0; i < params.size(); ++i) {
      const std::int64_t count = elements_of(op, op.program().value(params[i]));
      pieces_.push_back({params[i], snapshots[i], elements_, count});
      elements_ += count;
    }
  }

  std::size_t scratch_bytes() const override {  // the message: all differences, then the loss
    return static_cast<std::size_t>(elements_ + 1) * sizeof(float);
  }

  void run(const RunContext& context) override {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, "average_parameters runs without a communicator");
    auto* const schedule = schedule_ == kNone ? nullptr : at<AverageSchedule>(context, schedule_);
    const std::int64_t step = static_cast<std::int64_t>(context.step) + 1;
    if (!(schedule == nullptr ? is_average_due(step, steps_) : schedule->is_due(step, steps_))) return;
    auto* const message = static_cast<float*>(context.scratch);
    const float share = 1.0F / static_cast<float>(context.communicator->size());
    each(context, [&](const Piece& piece, float* param, float* snapshot) {
      vector_clones<difference_range>(snapshot, param, message + piece.begin, piece.count);
    });
    message[elements_] = loss_ == kNone ? 0 : *at(context, loss_);
    context.communicator->all_reduce({message, static_cast<std::size_t>(elements_ + 1), DType::f32},
                                     comm::ReduceOp::sum);
    each(context, [&](const Piece& piece, float* param, float* snapshot) {
      vector_clones<take_mean_range>(message + piece.begin, share, snapshot, param, piece.count);
    });
    if (schedule != nullptr) schedule->follow(message[elements_] * share, *at(context, rate_), steps_);
  }

 private:
  struct Piece {
    ValueId param, snapshot;
    std::int64_t begin, count;  // of its elements in the message
  };

  template <typename Body>
  void each(const RunContext& context, Body&& body) const {
    for (const Piece& piece : pieces_)
      parallel_for(piece.count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
        body(Piece{piece.param, piece.snapshot, piece.begin + begin, end - begin},
             at(context, piece.param) + begin, at(context, piece.snapshot) + begin);
      });
  }

  ops::AverageSteps steps_;
  ValueId schedule_, loss_, rate_;
  std::vector<Piece> pieces_;
  std::int64_t elements_ = 0;
};

}  // namespace

KernelDef average_parameters_kernel() {
  return {.choose_layouts = as_they_lie, .make = make_kernel<AverageParameters>};
}

}  // namespace fleetrun::runtime::cpu
