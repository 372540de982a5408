// The op of localsgd. The host starts the collective, so the host must know whether an average is due. With
// adaptive_localsgd it keeps a copy of the schedule: it waits for the device in the first step, and after each average
// for the loss.
#include <optional>

#include "base/error/error.h"
#include "comm/collective/communicator.h"
#include "cuda/plugin/op_tensors.h"
#include "cuda/plugin/updates.h"
#include "runtime/ops/rules/average_op.h"

namespace fleetrun::cuda {
namespace {

using runtime::ops::AverageSchedule;

// What the host exchanges with the device, in pinned memory.
struct Exchanged {
  AverageSchedule schedule;
  float loss, rate;
};

class AverageParameters : public Kernel {
 public:
  AverageParameters(const OpView& op, CudaDevice& device)
      : device_(device),
        exchanged_(device.streams()->allocate_staging(sizeof(Exchanged))),
        op_(runtime::ops::read_average_op(op, kPlace,
                                          [&](const Value& value) { return elements_of(op, value); })) {
    for (const runtime::ops::AveragedTensor& tensor : op_.tensors) tensors_.push_back({{}, tensor.count});
  }

  std::size_t scratch_bytes() const override { return op_.message_bytes(); }

  void run(const RunContext& context) override {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, "average_parameters runs without a communicator");
    const cudaStream_t stream = device_.stream(context.stream);
    const auto step = static_cast<std::int64_t>(context.step) + 1;
    if (op_.schedule == runtime::kNone ? is_average_due(step, op_.steps) : is_due(context, step, stream))
      average(context, stream);
    check(cudaGetLastError(), "starting average_parameters");
  }

 private:
  static constexpr std::int64_t kPlace =
      16;  // elements: each tensor's part of the message begins at a multiple of it

  Exchanged& exchanged() const { return *static_cast<Exchanged*>(exchanged_->data()); }

  bool is_due(const RunContext& context, std::int64_t step, cudaStream_t stream) {
    AverageSchedule& schedule = exchanged().schedule;
    if (step != next_step_) {  // a training began, or goes on
      copy_to_host(&schedule, at(context, op_.schedule), sizeof schedule, stream);
      device_.wait_for(stream);
    }
    next_step_ = step + 1;
    const bool due = schedule.is_due(step, op_.steps);
    if (!due) keep_schedule(context, stream);
    return due;
  }

  // The host may change its copy before the device reads it: the device then has the later one sooner.
  void keep_schedule(const RunContext& context, cudaStream_t stream) {
    check(cudaMemcpyAsync(at(context, op_.schedule), &exchanged().schedule, sizeof(AverageSchedule),
                          cudaMemcpyHostToDevice, stream),
          "keeping the schedule of averages");
  }

  void average(const RunContext& context, cudaStream_t stream) {
    auto* const message = static_cast<float*>(context.scratch);
    const float share = 1.0F / static_cast<float>(context.communicator->size());
    for (std::size_t i = 0; i < op_.tensors.size(); ++i)
      tensors_[i].data = {context.data[op_.tensors[i].param], context.data[op_.tensors[i].snapshot],
                          message + op_.tensors[i].begin};
    check(cudaMemsetAsync(message, 0, scratch_bytes(), stream), "zeroing a message");  // its gaps, too
    if (op_.loss != runtime::kNone)
      check(cudaMemcpyAsync(message + op_.elements, at(context, op_.loss), sizeof(float),
                            cudaMemcpyDeviceToDevice, stream),
            "copying the loss");
    differences(tensors_, stream);
    context.communicator->all_reduce({message, static_cast<std::size_t>(op_.elements + 1), DType::f32},
                                     comm::ReduceOp::sum);
    take_means(tensors_, share, stream);
    if (op_.schedule != runtime::kNone) follow(context, message + op_.elements, share, stream);
  }

  void follow(const RunContext& context, const float* loss, float share, cudaStream_t stream) {
    copy_to_host(&exchanged().loss, loss, sizeof(float), stream);
    copy_to_host(&exchanged().rate, at(context, op_.rate), sizeof(float), stream);
    device_.wait_for(stream);
    exchanged().schedule.follow(exchanged().loss * share, exchanged().rate, op_.steps);
    keep_schedule(context, stream);
  }

  static void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream),
          "reading the schedule of averages");
  }

  CudaDevice& device_;
  std::unique_ptr<comm::Memory> exchanged_;
  runtime::ops::AverageOp op_;
  std::vector<TensorArrays<3>> tensors_;
  std::optional<std::int64_t> next_step_;  // for which the host's copy of the schedule is right
};

std::unique_ptr<Kernel> make_average(const OpView& op, runtime::Device& device) {
  return std::make_unique<AverageParameters>(op, as_cuda(device));
}

}  // namespace

KernelDef average_parameters_kernel() {
  return {.choose_layouts = runtime::as_they_lie,
          .make = make_average,
          .decided_each_run = "ranks average their parameters in some steps only"};
}

}  // namespace fleetrun::cuda
