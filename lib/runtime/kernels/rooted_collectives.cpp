#include "runtime/kernels/rooted_collectives.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/communicator.h"
#include "runtime/graph/owner_of.h"
#include "runtime/kernels/contiguous_values.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime {
namespace {

comm::Communicator& communicator_of(const RunContext& context, const std::string& name) {
  if (context.communicator == nullptr)
    throw Error(ErrorKind::internal, name + " runs without a communicator");
  return *context.communicator;
}

class ReduceKernel : public Kernel {
 public:
  explicit ReduceKernel(const OpView& op)
      : root_(static_cast<int>(op.integer("root"))),
        values_(op.program(), op.input_ids("x")),
        name_("reduce of " + op.input("x").name) {}

  void run(const RunContext& context) override {
    communicator_of(context, name_).reduce(values_.view(context), comm::ReduceOp::sum, root_);
  }

 private:
  int root_;
  ContiguousValues values_;
  std::string name_;
};

// One message for each root: its values lie one after the other.
class BroadcastKernel : public Kernel {
 public:
  explicit BroadcastKernel(const OpView& op) : name_("broadcast of " + op.input("x").name) {
    const std::span<const ValueId> ids = op.input_ids("x");
    const std::vector<std::int64_t>& roots = op.integers("roots");
    for (std::size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
      while (end < ids.size() && roots[end] == roots[begin]) ++end;
      messages_.push_back(
          {static_cast<int>(roots[begin]), ContiguousValues(op.program(), ids.subspan(begin, end - begin))});
    }
  }

  void run(const RunContext& context) override {
    for (const Message& message : messages_)
      communicator_of(context, name_).broadcast(message.values.view(context), message.root);
  }

 private:
  struct Message {
    int root;
    ContiguousValues values;
  };
  std::vector<Message> messages_;
  std::string name_;
};

// Takes what the owner broadcasts.
class GatherParameterKernel : public Kernel {
 public:
  explicit GatherParameterKernel(const OpView& op)
      : owner_(owner_of(op.op())),
        values_(op.program(), op.output_ids("y")),
        name_("gather_parameter of " + op.output("y").name) {
    if (op.has_input("x")) throw Error(ErrorKind::internal, name_ + " runs on a rank that has the parameter");
  }

  void run(const RunContext& context) override {
    communicator_of(context, name_).broadcast(values_.view(context), owner_);
  }

 private:
  int owner_;
  ContiguousValues values_;
  std::string name_;
};

template <typename Which>
std::unique_ptr<Kernel> make(const OpView& op, Device&) {
  return std::make_unique<Which>(op);
}

}  // namespace

KernelDef reduce_kernel() { return {.choose_layouts = as_they_lie, .make = make<ReduceKernel>}; }
KernelDef gather_parameter_kernel() {
  return {.choose_layouts = as_they_lie, .make = make<GatherParameterKernel>};
}
KernelDef broadcast_kernel() { return {.choose_layouts = as_they_lie, .make = make<BroadcastKernel>}; }

}  // namespace fleetrun::runtime
