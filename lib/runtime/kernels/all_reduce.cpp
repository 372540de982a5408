#include "runtime/kernels/all_reduce.h"

#include "base/error/error.h"
#include "comm/collective/communicator.h"
#include "runtime/kernels/contiguous_values.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime {
namespace {

class AllReduceKernel : public Kernel {
 public:
  explicit AllReduceKernel(const OpView& op)
      : values_(op.program(), op.input_ids("x")), name_(op.input("x").name) {}

  void run(const RunContext& context) override {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, "all_reduce of " + name_ + " runs without a communicator");
    context.communicator->all_reduce(values_.view(context), comm::ReduceOp::sum);
  }

 private:
  ContiguousValues values_;
  std::string name_;
};

std::unique_ptr<Kernel> make(const OpView& op, Device&) { return std::make_unique<AllReduceKernel>(op); }

}  // namespace

KernelDef all_reduce_kernel() { return {.choose_layouts = as_they_lie, .make = make}; }

}  // namespace fleetrun::runtime
