#include "runtime/kernels/dgc_exchange.h"

#include "base/error/error.h"
#include "comm/collective/communicator.h"
#include "runtime/kernels/contiguous_values.h"
#include "runtime/kernels/layout_choice.h"
#include "runtime/ops/rules/sparse_schedule.h"

namespace fleetrun::runtime {
namespace {

class DgcExchange : public Kernel {
 public:
  explicit DgcExchange(const OpView& op)
      : schedule_(ops::sparse_schedule_of(op, count_of(op.input("grad").shape))),
        grad_(op.program(), op.input_ids("grad")),
        message_(op.input_id("message")),
        gathered_(op.output_id("gathered")),
        name_(op.input("grad").name) {}

  void run(const RunContext& context) override {
    comm::Communicator* const communicator = context.communicator;
    if (communicator == nullptr)
      throw Error(ErrorKind::internal, "dgc_exchange of " + name_ + " runs without a communicator");
    const std::int64_t kept = schedule_.kept_in(static_cast<std::int64_t>(context.step));
    if (kept == 0) return communicator->all_reduce(grad_.view(context), comm::ReduceOp::sum);
    const auto count = static_cast<std::size_t>(2 * kept);
    communicator->all_gather(
        {context.data[message_], count, DType::i32},
        {context.data[gathered_], count * static_cast<std::size_t>(communicator->size()), DType::i32});
  }

 private:
  ops::SparseSchedule schedule_;
  ContiguousValues grad_;
  ValueId message_, gathered_;
  std::string name_;
};

std::unique_ptr<Kernel> make_exchange(const OpView& op, Device&) { return std::make_unique<DgcExchange>(op); }

}  // namespace

KernelDef dgc_exchange_kernel() { return {.choose_layouts = as_they_lie, .make = make_exchange}; }

}  // namespace fleetrun::runtime
