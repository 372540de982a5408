// Kernels that look at each element by itself: they run over the bytes as they lie, whatever the layout.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/narrow.h"
#include "runtime/kernels/cpu/threads/parallel_for.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/layout_choice.h"

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

// Tensors of one type, which is bf16 if it is narrow and f32 otherwise.
template <std::size_t inputs>
struct ElementTensors {
  std::array<ValueId, inputs> in;
  ValueId out;
  bool is_narrow;
};

// Calls loop(inputs, output, count) for pieces of the tensors that together cover all, `inputs` an array of const float*.
// bf16 is seen as f32: a piece of it goes through the first cache.
template <std::size_t inputs, typename Loop>
void each_piece(const RunContext& context, const ElementTensors<inputs>& tensors, std::int64_t begin,
                std::int64_t end, Loop&& loop) {
  const auto& [in, out, is_narrow] = tensors;
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

// The inputs of a loop over elements, and the numbers that are the same for all elements.
using ElementInputs = std::array<const float*, 3>;
using ElementConstants = std::array<float, 2>;
using ElementLoop = void (*)(ElementInputs in, float* out, std::int64_t count, ElementConstants constants);

struct ElementOperands {
  ElementInputs in;
  ElementConstants constants;
};

template <auto f, std::size_t... input, std::size_t... constant>
FLEETRUN_VECTOR_LOOP void apply_to_elements(const ElementOperands& operands, float* out, std::int64_t count,
                                            std::index_sequence<input...>, std::index_sequence<constant...>) {
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = f(operands.in[input][i]..., operands.constants[constant]...);
}

template <typename... Arguments>
constexpr std::size_t count_arguments(float (*)(Arguments...)) {
  return sizeof...(Arguments);
}

// An ElementLoop for vector_clones: out[i] = f(an element of each of the first `inputs` inputs, constants).
template <auto f, std::size_t inputs>
FLEETRUN_VECTOR_LOOP void each_element(ElementInputs in, float* out, std::int64_t count,
                                       ElementConstants constants) {
  apply_to_elements<f>({in, constants}, out, count, std::make_index_sequence<inputs>(),
                       std::make_index_sequence<count_arguments(f) - inputs>());
}

// The kernel of an op whose output is f(an element of each input, constants). All tensors have the type of the first input.
// Without f's constants the op has as many inputs as f has arguments; later, optional inputs are absent.
template <auto f, typename... Constants>
std::unique_ptr<Kernel> elementwise_kernel(const OpView& op, Constants... constants) {
  constexpr std::size_t inputs = count_arguments(f) - sizeof...(constants);
  std::array<ValueId, inputs> in;
  std::copy_n(op.op().inputs.begin(), inputs, in.begin());
  const Value& first = op.program().value(in.front());
  const ElementTensors<inputs> tensors = {in, op.op().outputs.front(), first.dtype == DType::bf16};
  return simple_kernel([tensors, constants = ElementConstants{static_cast<float>(constants)...},
                        count = wide_or_narrow_elements(op, first)](const RunContext& context) {
    const auto loop = [&](const std::array<const float*, inputs>& from, float* to, std::int64_t pieces) {
      ElementInputs all = {};
      std::copy_n(from.begin(), inputs, all.begin());
      vector_clones<each_element<f, inputs>>(all, to, pieces, constants);
    };
    parallel_for(count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      each_piece(context, tensors, begin, end, loop);
    });
  });
}

// Whether f of zeros is 0, as the padding of a layout has to stay.
template <auto f, std::size_t... argument>
bool keeps_zero(std::index_sequence<argument...>) {
  return f((static_cast<void>(argument), 0.0F)...) == 0.0F;
}

template <auto f>
LayoutChoice choose_for_elements(const LayoutQuery& query, Device& device) {
  const LayoutChoice choice = like_first_input(query, device);
  return keeps_zero<f>(std::make_index_sequence<count_arguments(f)>()) ? choice
                                                                       : unless_padded(query, choice);
}

// As elementwise_kernel without constants; every tensor lies as the first input, unless f would write into the padding.
template <auto f>
KernelDef elementwise() {
  return {.choose_layouts = choose_for_elements<f>,
          .make = [](const OpView& op, Device&) { return elementwise_kernel<f>(op); }};
}

}  // namespace fleetrun::runtime::cpu
