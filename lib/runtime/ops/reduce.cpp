// Sum of a tensor over all ranks, in place on one of them.
//   x of rank root = sum over ranks of x; that of the others is left undefined
//   attributes: op, "sum"; root; communicator, 0 when absent;  any shape, layout and dtype, alike on every rank
// Throws Error(config) for another op than "sum" and for a root below 0.
#include <fmt/format.h>

#include "runtime/ops/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_reduce(Inference& op) {
  if (op.text("op") != "sum") op.fail(fmt::format("op is \"{}\", wanted \"sum\"", op.text("op")));
  if (op.integer("root") < 0) op.fail(fmt::format("root is {}, wanted a rank", op.integer("root")));
}

}  // namespace

OpDef reduce() {
  return {.name = "reduce", .inputs = {"x"}, .outputs = {"x"}, .infer = infer_reduce, .in_place = {"x"}};
}

}  // namespace fleetrun::runtime::ops
