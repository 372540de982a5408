// Kernels that look at each element by itself: they run over the bytes as they lie, whatever the layout.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/kernels/cpu/loops/narrow.h"
#include "runtime/kernels/cpu/threads/parallel_for.h"
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime::cpu {

// Elements of a value in memory, the padding of its layout included. Throws Error(config) unless it is f32.
std::int64_t elements_of(const OpView& op, const Value& value);
// Unless it is f32 or bf16.
std::int64_t wide_or_narrow_elements(const OpView& op, const Value& value);

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

// Calls loop(inputs, output, count) for pieces of the tensors that together cover all, `inputs` an array of const float*.
// bf16 is seen as f32: a piece of it goes through the first cache.
template <std::size_t inputs, typename Loop>
void each_piece(const RunContext& context, const std::array<ValueId, inputs>& in, ValueId out, bool is_narrow,
                std::int64_t begin, std::int64_t end, Loop&& loop) {
  std::array<const float*, inputs> from;
  if (!is_narrow) {
    for (std::size_t i = 0; i < inputs; ++i) from[i] = at(context, in[i]) + begin;
    return loop(from, at(context, out) + begin, end - begin);
  }
  constexpr std::int64_t kPiece = 1024;  // 4 KiB as f32
  alignas(64) float wide[inputs + 1][kPiece];
  for (std::size_t i = 0; i < inputs; ++i) from[i] = wide[i];
  for (; begin < end; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, end - begin);
    for (std::size_t i = 0; i < inputs; ++i) widen(at<Bf16>(context, in[i]) + begin, wide[i], count);
    loop(from, wide[inputs], count);
    narrow(wide[inputs], at<Bf16>(context, out) + begin, count);
  }
}

// A kernel that looks at each element by itself: loop(inputs, output, count) as each_piece has it. All tensors have the
// type of the first input.
template <std::size_t inputs, typename Loop>
std::unique_ptr<Kernel> elementwise_kernel(const OpView& op, const std::array<ValueId, inputs>& in,
                                           ValueId out, Loop loop) {
  const Value& first = op.program().value(in.front());
  return simple_kernel([in, out, loop, count = wide_or_narrow_elements(op, first),
                        is_narrow = first.dtype == DType::bf16](const RunContext& context) {
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      each_piece(context, in, out, is_narrow, begin, end, loop);
    });
  });
}

}  // namespace fleetrun::runtime::cpu
