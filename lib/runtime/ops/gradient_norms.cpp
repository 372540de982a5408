// The norm of each gradient, into its place of a vector, which is updated in place.
//   norms[first + i] = |grad i|          grad: a list of any shapes, f32;  norms [n] f32;  attribute: first
// Throws Error(config) when norms has too few places.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_norms(Inference& op) {
  const auto wanted = op.integer("first") + static_cast<std::int64_t>(op.input_ids("grad").size());
  const Shape& shape = op.input("norms").shape;
  if (shape.size() != 1 || shape.front() < wanted)
    op.fail(fmt::format("norms is {}, wanted [n] with n of at least {}", describe(shape), wanted));
}

}  // namespace

OpDef gradient_norms() {
  return {.inputs = {"grad*", "norms"}, .outputs = {"norms"}, .infer = infer_norms, .in_place = {"norms"}};
}

}  // namespace fleetrun::runtime::ops
