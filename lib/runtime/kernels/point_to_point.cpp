#include "runtime/kernels/point_to_point.h"

#include "base/error/error.h"
#include "comm/collective/communicator.h"

namespace fleetrun::runtime {
namespace {

constexpr int kSender = 0;  // in the communicator of the two ranks

// The padding of the layout travels, too: both ranks have it.
class TransferKernel : public Kernel {
 public:
  TransferKernel(const Value& value, ValueId id)
      : id_(id), count_(value.bytes() / size_of(value.dtype)), dtype_(value.dtype), name_(value.name) {}

  void run(const RunContext& context) override {
    if (context.communicator == nullptr)
      throw Error(ErrorKind::internal, "the transfer of " + name_ + " runs without a communicator");
    context.communicator->broadcast({context.data[id_], count_, dtype_}, kSender);
  }

 private:
  ValueId id_;
  std::size_t count_;
  DType dtype_;
  std::string name_;
};

std::unique_ptr<Kernel> make_send(const OpView& op, Device&) {
  return std::make_unique<TransferKernel>(op.input("x"), op.input_id("x"));
}

std::unique_ptr<Kernel> make_recv(const OpView& op, Device&) {
  return std::make_unique<TransferKernel>(op.output("x"), op.output_id("x"));
}

}  // namespace

KernelDef send_kernel() { return {.make = make_send}; }
KernelDef recv_kernel() { return {.make = make_recv}; }

}  // namespace fleetrun::runtime
