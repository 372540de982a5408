// How many samples have their label as the highest, or among the five highest, of their scores.
//   hits = (top-1 hits, top-5 hits, samples counted)      x [N, classes] f32;  label [N] i32;  hits f32 [3]
// A label below 0 is not counted. Of equal scores the one with the lower index is higher. No gradient.
// Throws Error(config) when label is not i32 [N].
#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/labels.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_accuracy(Inference& op) {
  expect_scores_and_labels(op, "x");
  op.set_output("hits", {3});
}

}  // namespace

OpDef accuracy() { return {.inputs = {"x", "label"}, .outputs = {"hits"}, .infer = infer_accuracy}; }

}  // namespace fleetrun::runtime::ops
