// One value goes to the next or the previous stage of a pipeline, which receives it by the op recv.
//   x of any shape, layout and dtype      attributes: communicator, of these two ranks alone; 0 when absent
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_send(Inference&) {}

}  // namespace

OpDef send() { return {.inputs = {"x"}, .outputs = {}, .infer = infer_send}; }

}  // namespace fleetrun::runtime::ops
