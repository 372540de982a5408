#include "runtime/kernels/rooted_collectives.h"

#include <fmt/format.h>

#include "base/error.h"
#include "comm/communicator.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime {
namespace {

class RootedCollective : public Kernel {
 public:
  explicit RootedCollective(const OpView& op)
      : root_(static_cast<int>(op.integer("root"))),
        id_(op.input_id("x")),
        name_(fmt::format("{} of {}", op.def().name, op.input("x").name)),
        dtype_(op.input("x").dtype),
        count_(op.input("x").bytes() / size_of(dtype_)) {}

  void run(const RunContext& context) final {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, name_ + " runs without a communicator");
    call(*context.communicator, {context.data[id_], count_, dtype_});
  }

 protected:
  int root() const { return root_; }

 private:
  virtual void call(comm::Communicator& communicator, BufferView buffer) = 0;

  int root_;
  ValueId id_;
  std::string name_;
  DType dtype_;
  std::size_t count_;  // padding of the layout included: zeros, which stay zeros
};

class ReduceKernel : public RootedCollective {
  using RootedCollective::RootedCollective;
  void call(comm::Communicator& communicator, BufferView buffer) override {
    communicator.reduce(buffer, comm::ReduceOp::sum, root());
  }
};

class BroadcastKernel : public RootedCollective {
  using RootedCollective::RootedCollective;
  void call(comm::Communicator& communicator, BufferView buffer) override {
    communicator.broadcast(buffer, root());
  }
};

LayoutChoice choose(const LayoutQuery& query, Device&) { return like_input(query, "x"); }

template <typename Which>
std::unique_ptr<Kernel> make(const OpView& op, Device&) {
  return std::make_unique<Which>(op);
}

}  // namespace

KernelDef reduce_kernel() { return {.choose_layouts = choose, .make = make<ReduceKernel>}; }
KernelDef broadcast_kernel() { return {.choose_layouts = choose, .make = make<BroadcastKernel>}; }

}  // namespace fleetrun::runtime
