// Works on plain tensors: which elements are kept depends on their row-major index, not on the layout.
#include <algorithm>
#include <array>

#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/ops/rules/dropout.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kBlock = 4;  // elements per draw

struct Dropping {
  ops::DropoutDraw draw;
  float scale = 1;  // of what is kept
};

// From element `first`, which starts a draw.
void drop(const Dropping& with, const float* x, float* y, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const auto words = with.draw.words(static_cast<std::uint64_t>((first + i) / kBlock));
    for (std::int64_t k = i; k < std::min(i + kBlock, count); ++k)
      y[k] = words[static_cast<std::size_t>(k - i)] < with.draw.below ? 0.0F : x[k] * with.scale;
  }
}

std::unique_ptr<Kernel> make(const OpView& op, const Value& from, ValueId x, ValueId y) {
  const double p = op.number("p");
  const ops::DropoutDraw fixed = {.key = static_cast<std::uint32_t>(op.integer("key")),
                                  .below = ops::dropped_below(p)};
  const ElementTensors<1> tensors = {{x}, y, from.dtype == DType::bf16};
  return simple_kernel([fixed, tensors, scale = static_cast<float>(1.0 / (1.0 - p)),
                        count = wide_or_narrow_elements(op, from)](const RunContext& context) {
    Dropping with = {fixed, scale};
    with.draw.seed = context.seed;
    with.draw.step = context.step;
    const std::int64_t blocks = (count + kBlock - 1) / kBlock;
    parallel_for(blocks, kElementsPerThread / kBlock, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t first = begin * kBlock;
      each_piece(context, tensors, first, std::min(end * kBlock, count),
                 [&](const auto& in, float* out, std::int64_t piece) {
                   drop(with, in[0], out, first, piece);
                   first += piece;
                 });
    });
  });
}

std::unique_ptr<Kernel> make_dropout(const OpView& op, Device&) {
  return make(op, op.input("x"), op.input_id("x"), op.output_id("y"));
}

std::unique_ptr<Kernel> make_dropout_grad(const OpView& op, Device&) {
  return make(op, op.input("dy"), op.input_id("dy"), op.output_id("dx"));
}

}  // namespace

KernelDef dropout_kernel() { return {.make = make_dropout}; }
KernelDef dropout_grad_kernel() { return {.make = make_dropout_grad}; }

}  // namespace fleetrun::runtime::cpu
