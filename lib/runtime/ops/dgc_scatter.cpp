// The mean over the ranks of what they sent of a gradient (dgc_exchange); 0 where no rank sent anything. In place.
//   grad[index] = sum over ranks of the element / ranks
//   grad f32;  gathered i32;  attributes: ranks; rampup_begin_step, rampup_step, kept (rules/sparse_schedule.h)
// Does nothing in steps that sum the whole gradient. Throws Error(config) when the shapes do not fit.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/sparse_schedule.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_scatter(Inference& op) {
  const SparseSchedule schedule = sparse_schedule_of(op, count_of(op.input("grad").shape));
  const Shape wanted = {op.integer("ranks") * 2 * schedule.most()};
  const Value& gathered = op.input("gathered");
  if (gathered.shape != wanted || gathered.dtype != DType::i32)
    op.fail(fmt::format("gathered is {} {}, wanted i32 {}", describe(gathered.dtype),
                        describe(gathered.shape), describe(wanted)));
}

}  // namespace

OpDef dgc_scatter() {
  return {.inputs = {"grad", "gathered"}, .outputs = {"grad"}, .infer = infer_scatter, .in_place = {"grad"}};
}

}  // namespace fleetrun::runtime::ops
