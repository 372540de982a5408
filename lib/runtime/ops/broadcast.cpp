// What one rank has, on all of them, in place.
//   x = x of its root
//   attributes: roots, one for each of x; communicator, 0 when absent
//   x: a list of any shapes and layouts and one dtype, alike on every rank; neighbours with one root must lie one
//   after the other (Program::contiguous) and travel as one message
// Throws Error(config) for several dtypes, and unless there is a root, 0 or above, for each of x.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/messages.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_broadcast(Inference& op) {
  expect_one_dtype(op);
  const std::vector<std::int64_t>& roots = op.integers("roots");
  if (roots.size() != op.input_ids("x").size())
    op.fail(fmt::format("roots has {} ranks, wanted one for each of {} values", roots.size(),
                        op.input_ids("x").size()));
  for (const std::int64_t root : roots)
    if (root < 0) op.fail(fmt::format("a root is {}, wanted a rank", root));
}

}  // namespace

OpDef broadcast() {
  return {.inputs = {"x*"}, .outputs = {"x*"}, .infer = infer_broadcast, .in_place = {"x"}};
}

}  // namespace fleetrun::runtime::ops
