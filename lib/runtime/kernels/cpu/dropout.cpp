// Works on plain tensors: which elements are kept depends on their row-major index, not on the layout.
#include "runtime/ops/kept.h"

#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/cpu/vector_clones.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kBlock = 4;  // elements per draw

FLEETRUN_VECTOR_CLONES void drop_blocks(const ops::DropoutDraw& draw, float scale, const float* x, float* y,
                                        std::int64_t begin, std::int64_t end) {
  for (std::int64_t block = begin; block < end; ++block) {
    const std::array<std::uint32_t, 4> words = draw.words(static_cast<std::uint64_t>(block));
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::size_t at = static_cast<std::size_t>(block * kBlock) + i;
      y[at] = words[i] < draw.below ? 0.0F : x[at] * scale;
    }
  }
}

void drop_rest(const ops::DropoutDraw& draw, float scale, const float* x, float* y, std::int64_t count) {
  const std::int64_t whole = count / kBlock;
  const std::array<std::uint32_t, 4> words = draw.words(static_cast<std::uint64_t>(whole));
  for (std::int64_t i = whole * kBlock; i < count; ++i)
    y[i] = words[static_cast<std::size_t>(i - whole * kBlock)] < draw.below ? 0.0F : x[i] * scale;
}

std::unique_ptr<Kernel> make(const OpView& op, const Value& from, ValueId x, ValueId y) {
  const double p = op.number("p");
  const ops::DropoutDraw fixed = {.key = static_cast<std::uint32_t>(op.integer("key")),
                                  .below = ops::dropped_below(p)};
  return simple_kernel([fixed, x, y, scale = static_cast<float>(1.0 / (1.0 - p)),
                        count = elements_of(op, from)](const RunContext& context) {
    ops::DropoutDraw draw = fixed;
    draw.seed = context.seed;
    draw.step = context.step;
    parallel_for(count / kBlock, kElementsPerThread / kBlock, [&](std::int64_t begin, std::int64_t end) {
      drop_blocks(draw, scale, at(context, x), at(context, y), begin, end);
    });
    drop_rest(draw, scale, at(context, x), at(context, y), count);
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
