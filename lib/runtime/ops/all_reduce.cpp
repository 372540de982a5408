// Sum of a tensor over all ranks, in place.
//   x = sum over ranks of x      attributes: op, "sum"; communicator, 0 when absent;  any shape, layout and dtype, alike on every rank
// Throws Error(config) for another op than "sum".
#include "runtime/ops/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_all_reduce(Inference& op) {
  if (op.text("op") != "sum") op.fail("op is \"" + op.text("op") + "\", wanted \"sum\"");
}

}  // namespace

OpDef all_reduce() {
  return {
      .name = "all_reduce", .inputs = {"x"}, .outputs = {"x"}, .infer = infer_all_reduce, .in_place = {"x"}};
}

}  // namespace fleetrun::runtime::ops
