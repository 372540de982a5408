// The bytes of images as the numbers that a network takes: a shifted, perhaps mirrored view of each image, with
// (x - mean) / std. NVIDIA DALI has an operator of this name.
//   x [N,C,H,W] u8;  view [N,4] i32;  y [N,C,H,W] of the type asked for
//   y[n,c,i,j] = (x[n,c,i + top,j' + left] - mean[c]) * scale[c],    j' = W - 1 - j if mirrored, else j
//   view[n] = (top, left, mirrored, present), the last two 0 or 1. Pixels outside of the image are black, x = 0. An
//   image that is not present is y = 0.
//   attributes: mean, scale: C numbers each; dtype "f32" | "f16" | "bf16"
// No gradient. Throws Error(config) for other types and shapes.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

constexpr std::int64_t kViewNumbers = 4;

void infer_crop_mirror_normalize(Inference& op) {
  const Value &x = op.input("x"), &view = op.input("view");
  if (x.dtype != DType::u8 || x.shape.size() != 4)
    op.fail(fmt::format("x is {} {}, wanted u8 [N,C,H,W]", describe(x.dtype), describe(x.shape)));
  if (view.dtype != DType::i32 || view.shape != Shape{x.shape[0], kViewNumbers})
    op.fail(fmt::format("view is {} {}, wanted i32 [{},{}]", describe(view.dtype), describe(view.shape),
                        x.shape[0], kViewNumbers));
  for (const char* name : {"mean", "scale"})
    if (const auto count = static_cast<std::int64_t>(op.numbers(name).size()); count != x.shape[1])
      op.fail(fmt::format("{} has {} numbers, wanted one for each of {} channels", name, count, x.shape[1]));
  const std::optional<DType> dtype = parse_dtype(op.text("dtype"));
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
    op.fail(fmt::format("dtype is \"{}\", wanted \"f32\", \"f16\" or \"bf16\"", op.text("dtype")));
  op.set_output("y", Shape(x.shape), *dtype);
}

}  // namespace

OpDef crop_mirror_normalize() {
  return {.inputs = {"x", "view"}, .outputs = {"y"}, .infer = infer_crop_mirror_normalize};
}

}  // namespace fleetrun::runtime::ops
