#include "runtime/optim/clip_gradients.h"

#include <span>

namespace fleetrun::runtime {
namespace {

using Gradients = std::span<const ValueId>;

struct ClipOp {
  std::string type;
  Attributes attributes;
  ValueId norms = kNone;
  bool updates_gradients = true;  // else norms
};

void add_clip(Program& program, ClipOp clip, Gradients gradients) {
  Op op = {.type = std::move(clip.type),
           .inputs = {gradients.begin(), gradients.end()},
           .attributes = std::move(clip.attributes),
           .role = Role::optimize};
  op.outputs = clip.updates_gradients ? op.inputs : std::vector<ValueId>{clip.norms};
  if (clip.norms != kNone) op.inputs.push_back(clip.norms);
  program.ops.push_back(std::move(op));
}

// add(first, some of them), one by one or all at once.
template <typename Add>
void each_gradient(const std::vector<ValueId>& gradients, bool one_by_one, Add&& add) {
  const Gradients all(gradients);
  if (!one_by_one) return add(std::size_t{0}, all);
  for (std::size_t i = 0; i < all.size(); ++i) add(i, all.subspan(i, 1));
}

ValueId add_norms(Builder& builder, const std::vector<ValueId>& gradients, bool one_by_one) {
  const Shape shape = {static_cast<std::int64_t>(gradients.size())};
  const ValueId norms = builder
                            .add({.type = "fill",
                                  .attributes = {{"shape", shape}, {"value", 0.0}},
                                  .role = Role::optimize,
                                  .name = "gradient_norms"})
                            .front();
  each_gradient(gradients, one_by_one, [&](std::size_t first, Gradients some) {
    add_clip(builder.program(),
             {.type = "gradient_norms",
              .attributes = {{"first", static_cast<std::int64_t>(first)}},
              .norms = norms,
              .updates_gradients = false},
             some);
  });
  return norms;
}

std::string clip_type(job::ClipBy by) {
  switch (by) {
    case job::ClipBy::value:
      return "clip_by_value";
    case job::ClipBy::norm:
      return "clip_by_norm";
    default:
      return "clip_by_global_norm";
  }
}

}  // namespace

void append_clipping(Builder& builder, const job::GradientClipSpec& clip,
                     const std::vector<ValueId>& gradients, bool one_by_one) {
  if (clip.by == job::ClipBy::none) return;
  const ValueId norms =
      clip.by == job::ClipBy::global_norm ? add_norms(builder, gradients, one_by_one) : kNone;
  each_gradient(gradients, one_by_one, [&](std::size_t, Gradients some) {
    add_clip(builder.program(),
             {.type = clip_type(clip.by), .attributes = {{"limit", clip.limit}}, .norms = norms}, some);
  });
}

}  // namespace fleetrun::runtime
