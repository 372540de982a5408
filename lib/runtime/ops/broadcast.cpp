// What one rank has, on all of them, in place.
//   x = x of rank root
//   attributes: root; communicator, 0 when absent;  any shape, layout and dtype, alike on every rank
// Throws Error(config) for a root below 0.
#include <fmt/format.h>

#include "runtime/ops/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_broadcast(Inference& op) {
  if (op.integer("root") < 0) op.fail(fmt::format("root is {}, wanted a rank", op.integer("root")));
}

}  // namespace

OpDef broadcast() {
  return {
      .name = "broadcast", .inputs = {"x"}, .outputs = {"x"}, .infer = infer_broadcast, .in_place = {"x"}};
}

}  // namespace fleetrun::runtime::ops
