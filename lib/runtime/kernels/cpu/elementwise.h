// Kernels that look at each element by itself: they run over the bytes as they lie, whatever the layout.
#pragma once
#include <cstdint>

#include "runtime/kernels/cpu/parallel_for.h"
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime::cpu {

// Elements of a value in memory, the padding of its layout included. Throws Error(config) unless it is f32.
std::int64_t elements_of(const OpView& op, const Value& value);

// As the first input that lies in blocks, else plain: more of the neighbours are likely to want the blocks.
LayoutChoice like_the_blocked(const LayoutQuery& query, Device&);

// The padding of a layout stays 0. For ops that would change it: `choice`, but everything plain where it pads.
LayoutChoice unless_padded(const LayoutQuery& query, const LayoutChoice& choice);

// A kernel made of one function of the run: `run(context)`.
template <typename Run>
class SimpleKernel : public Kernel {
 public:
  explicit SimpleKernel(Run run) : run_(std::move(run)) {}
  void run(const RunContext& context) override { run_(context); }

 private:
  Run run_;
};

template <typename Run>
std::unique_ptr<Kernel> simple_kernel(Run run) {
  return std::make_unique<SimpleKernel<Run>>(std::move(run));
}

// KernelDef::make of a kernel that is made of an op alone.
template <typename OneKernel>
std::unique_ptr<Kernel> make_kernel(const OpView& op, Device&) {
  return std::make_unique<OneKernel>(op);
}

template <typename T = float>
T* at(const RunContext& context, ValueId id) {
  return static_cast<T*>(context.data[id]);
}

}  // namespace fleetrun::runtime::cpu
