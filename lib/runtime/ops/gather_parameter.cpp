// A parameter that one rank keeps, on a rank that needs it (strategy.sharding, stage 3).
//   y = x of its owner
//   attributes: owner, a rank of the communicator; shape, that of x and y; communicator, 0 when absent
//   x: where the program is that of all ranks; the ranks that run the op do not have it, and the owner broadcasts it instead
//   (passes/keep_own_updates.h). x f32 of any layout, y alike
// Throws Error(config) for an x of another shape.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_gather(Inference& op) {
  const Shape& shape = op.integers("shape");
  if (op.has_input("x") && op.input("x").shape != shape)
    op.fail(fmt::format("x is {}, wanted {}", describe(op.input("x").shape), describe(shape)));
  op.set_output("y", shape);
}

}  // namespace

OpDef gather_parameter() { return {.inputs = {"x?"}, .outputs = {"y"}, .infer = infer_gather}; }

}  // namespace fleetrun::runtime::ops
