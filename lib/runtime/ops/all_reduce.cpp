// Sum of tensors over all ranks, in place.
//   x = sum over ranks of x      attributes: op, "sum"; communicator, 0 when absent
//   x: a list of any shapes and layouts and one dtype, alike on every rank; several must lie one after the other
//   (Program::contiguous) and travel as one message
// Throws Error(config) for another op than "sum" and for several dtypes.
#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/messages.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_all_reduce(Inference& op) {
  expect_sum(op);
  expect_one_dtype(op);
}

}  // namespace

OpDef all_reduce() {
  return {.inputs = {"x*"}, .outputs = {"x*"}, .infer = infer_all_reduce, .in_place = {"x"}};
}

}  // namespace fleetrun::runtime::ops
