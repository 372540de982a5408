#include "runtime/kernels/all_reduce.h"

#include "base/error.h"
#include "comm/communicator.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime {
namespace {

class AllReduceKernel : public Kernel {
 public:
  explicit AllReduceKernel(const OpView& op)
      : id_(op.input_id("x")),
        name_(op.input("x").name),
        dtype_(op.input("x").dtype),
        count_(op.input("x").bytes() / size_of(dtype_)) {}

  void run(const RunContext& context) override {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, "all_reduce of " + name_ + " runs without a communicator");
    context.communicator->all_reduce({context.data[id_], count_, dtype_}, comm::ReduceOp::sum);
  }

 private:
  ValueId id_;
  std::string name_;
  DType dtype_;
  std::size_t count_;  // padding of the layout included: zeros, which stay zeros
};

LayoutChoice choose(const LayoutQuery& query, Device&) { return like_input(query, "x"); }

std::unique_ptr<Kernel> make(const OpView& op, Device&) { return std::make_unique<AllReduceKernel>(op); }

}  // namespace

KernelDef all_reduce_kernel() { return {.choose_layouts = choose, .make = make}; }

}  // namespace fleetrun::runtime
