// The same tensor in another layout, put in where two neighbours disagree.
//   y = x               any shape and dtype; the layouts are those of the values x and y
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_reorder(Inference& op) { op.set_output("y", op.input("x").shape, op.input("x").dtype); }

}  // namespace

OpDef reorder() { return {.inputs = {"x"}, .outputs = {"y"}, .infer = infer_reorder}; }

}  // namespace fleetrun::runtime::ops
