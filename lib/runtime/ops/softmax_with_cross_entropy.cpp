// Softmax over the classes and the negative log of the label's probability, in one stable step.
//   softmax = exp(logits - m) / s      m = max(logits), s = sum of exp(logits - m), of each row
//   loss = log(s) + m - logits[label]      0 where label < 0
//   logits [N, classes] f32;  label [N] i32;  softmax [N, classes];  loss [N]
//   dlogits = (softmax - onehot(label)) * dloss      0 where label < 0
// Throws Error(config) when label is not i32 [N], or when something asks for a gradient through softmax;
// a label of `classes` or more is an Error(data) in the run.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/labels.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_loss(Inference& op) {
  expect_scores_and_labels(op, "logits");
  const Value& logits = op.input("logits");
  op.set_output("softmax", logits.shape, logits.dtype);
  op.set_output("loss", {logits.shape[0]});
}

void grad_loss(GradientRule& rule) {
  const OpView& forward = rule.forward();
  if (rule.output_gradient("softmax") != kNone)
    forward.fail("a gradient flows into softmax, but only loss has one here");
  const ValueId dloss = rule.output_gradient("loss");
  if (dloss == kNone || !rule.wants("logits")) return;
  const Arguments inputs = {
      {"softmax", forward.output_id("softmax")}, {"label", forward.input_id("label")}, {"dloss", dloss}};
  rule.set_gradient("logits", rule.emit("softmax_with_cross_entropy_grad", inputs, {}).front());
}

std::vector<Sample> loss_samples() {
  const auto labels = [](std::int64_t count, std::int64_t classes) {
    return SampleInput{{count}, SampleInput::Fill::labels, classes};
  };
  return {{.inputs = {{"logits", {{5, 7}}}, {"label", labels(5, 7)}}},
          {.inputs = {{"logits", {{1, 2}}}, {"label", labels(1, 2)}}}};
}

void infer_loss_grad(Inference& op) {
  expect_scores_and_labels(op, "softmax");
  const Value& softmax = op.input("softmax");
  if (op.input("dloss").shape != Shape{softmax.shape[0]})
    op.fail(fmt::format("dloss is {}, wanted [{}]", describe(op.input("dloss").shape), softmax.shape[0]));
  op.set_output("dlogits", softmax.shape, softmax.dtype);
}

}  // namespace

OpDef softmax_with_cross_entropy() {
  return {.inputs = {"logits", "label"},
          .outputs = {"softmax", "loss"},
          .infer = infer_loss,
          .gradient = grad_loss,
          .samples = loss_samples};
}

OpDef softmax_with_cross_entropy_grad() {
  return {.inputs = {"softmax", "label", "dloss"}, .outputs = {"dlogits"}, .infer = infer_loss_grad};
}

}  // namespace fleetrun::runtime::ops
