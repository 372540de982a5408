// The messages of all ranks about one gradient (dgc_select). In steps that sum the whole gradient, the sum instead, in place.
//   gathered = message of rank 0, message of rank 1, ...            or: grad = sum over ranks of grad
//   grad f32;  message i32 [2 * the most of kept];  gathered i32 [ranks * 2 * the most of kept]: each message has 2 * kept elements
//   attributes: ranks; rampup_begin_step, rampup_step, kept (rules/sparse_schedule.h)
// Throws Error(config) when the shapes do not fit.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/sparse_schedule.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_exchange(Inference& op) {
  const SparseSchedule schedule = sparse_schedule_of(op, count_of(op.input("grad").shape));
  const Value& message = op.input("message");
  if (message.shape != Shape{2 * schedule.most()} || message.dtype != DType::i32)
    op.fail(fmt::format("message is {} {}, wanted i32 [{}]", describe(message.dtype), describe(message.shape),
                        2 * schedule.most()));
  if (op.integer("ranks") < 1) op.fail(fmt::format("ranks is {}, must be 1 or more", op.integer("ranks")));
  op.set_output("gathered", {op.integer("ranks") * 2 * schedule.most()}, DType::i32);
}

}  // namespace

OpDef dgc_exchange() {
  return {.inputs = {"grad", "message"},
          .outputs = {"grad", "gathered"},
          .infer = infer_exchange,
          .in_place = {"grad"}};
}

}  // namespace fleetrun::runtime::ops
