// localsgd: the mean of the ranks' parameters, in the steps in which it is due, in place.
//   mean = snapshot - (sum over ranks of (snapshot - param)) / ranks;  param = mean;  snapshot = mean
//   param, snapshot f32, lists of one length, alike
//   attributes: begin_step, k_steps
// It is due in steps 1 to begin_step, and then in every k_steps-th step.
// With schedule [4], loss [1] and learning_rate [1], k_steps is only the first number of steps (adaptive_localsgd). In each average
// the number becomes
//   ceil(sqrt(k_steps * (first learning_rate * loss) / (learning_rate * first loss))), at least 1 and at most 16
// where loss is the mean over the ranks, and the first ones are those of the first average.
//   schedule: the number of steps, steps since the last average, first learning_rate, first loss; all 0 at first
// Throws Error(config) when the shapes differ, or k_steps or begin_step is below 1.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/loss_scaling.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_average_parameters(Inference& op) {
  expect_like_param(op, "snapshot");
  for (const char* attribute : {"begin_step", "k_steps"})
    if (op.integer(attribute) < 1)
      op.fail(fmt::format("{} is {}, must be 1 or more", attribute, op.integer(attribute)));
  if (!op.has_input("schedule")) return;
  if (op.input("schedule").shape != Shape{4})
    op.fail(fmt::format("schedule is {}, wanted [4]", describe(op.input("schedule").shape)));
  expect_one_number(op, "loss");
  expect_one_number(op, "learning_rate");
}

}  // namespace

OpDef average_parameters() {
  return {.inputs = {"param*", "snapshot*", "schedule?", "loss?", "learning_rate?"},
          .outputs = {"param*", "snapshot*", "schedule"},
          .infer = infer_average_parameters,
          .in_place = {"param", "snapshot", "schedule"}};
}

}  // namespace fleetrun::runtime::ops
