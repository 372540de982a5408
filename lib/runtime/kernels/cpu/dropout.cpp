// Works on plain tensors: which elements are kept depends on their row-major index, not on the layout.
#include <array>

#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/ops/kept.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kBlock = 4;  // elements per draw

struct Dropping {
  ops::DropoutDraw draw;
  float scale;  // of what is kept
  const float* x;
  float* y;
};

void drop_block(const Dropping& with, std::int64_t block, std::int64_t count) {
  const std::array<std::uint32_t, 4> words = with.draw.words(static_cast<std::uint64_t>(block));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = block * kBlock + i;
    with.y[at] = words[static_cast<std::size_t>(i)] < with.draw.below ? 0.0F : with.x[at] * with.scale;
  }
}

std::unique_ptr<Kernel> make(const OpView& op, const Value& from, ValueId x, ValueId y) {
  const double p = op.number("p");
  const ops::DropoutDraw fixed = {.key = static_cast<std::uint32_t>(op.integer("key")),
                                  .below = ops::dropped_below(p)};
  return simple_kernel([fixed, x, y, scale = static_cast<float>(1.0 / (1.0 - p)),
                        count = elements_of(op, from)](const RunContext& context) {
    Dropping with = {fixed, scale, at(context, x), at(context, y)};
    with.draw.seed = context.seed;
    with.draw.step = context.step;
    const std::int64_t whole = count / kBlock;
    parallel_for(whole, kElementsPerThread / kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) drop_block(with, block, kBlock);
    });
    if (count > whole * kBlock) drop_block(with, whole, count - whole * kBlock);
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
