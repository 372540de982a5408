// A constant tensor: what backward starts from.
//   y = value           attributes: value (a number), shape;  y f32
// Throws Error(config) when a size of shape is below 1.
#include <algorithm>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_fill(Inference& op) {
  const Shape& shape = op.integers("shape");
  op.number("value");
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 1; }))
    op.fail("shape is " + describe(shape) + ", every size must be 1 or more");
  op.set_output("y", shape);
}

}  // namespace

OpDef fill() { return {.inputs = {}, .outputs = {"y"}, .infer = infer_fill}; }

}  // namespace fleetrun::runtime::ops
