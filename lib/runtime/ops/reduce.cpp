// Sum of tensors over all ranks, in place on one of them.
//   x of rank root = sum over ranks of x; that of the others is left undefined
//   attributes: op, "sum"; root; communicator, 0 when absent
//   x: a list as all_reduce takes it
// Throws Error(config) for another op than "sum", for several dtypes and for a root below 0.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/messages.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_reduce(Inference& op) {
  expect_sum(op);
  expect_one_dtype(op);
  if (op.integer("root") < 0) op.fail(fmt::format("root is {}, wanted a rank", op.integer("root")));
}

}  // namespace

OpDef reduce() { return {.inputs = {"x*"}, .outputs = {"x*"}, .infer = infer_reduce, .in_place = {"x"}}; }

}  // namespace fleetrun::runtime::ops
