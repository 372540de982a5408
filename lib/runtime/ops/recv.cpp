// One value from the next or the previous stage of a pipeline, which sends it by the op send.
//   x      attributes: shape; dtype; communicator, of these two ranks alone, 0 when absent
//   x lies as it does on the rank that sends it.
// Throws Error(config) for an unknown dtype.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_recv(Inference& op) {
  const std::optional<DType> dtype = parse_dtype(op.text("dtype"));
  if (!dtype) op.fail(fmt::format("dtype is \"{}\", wanted a type such as \"f32\"", op.text("dtype")));
  op.set_output("x", Shape(op.integers("shape")), *dtype);
}

}  // namespace

OpDef recv() { return {.inputs = {}, .outputs = {"x"}, .infer = infer_recv}; }

}  // namespace fleetrun::runtime::ops
