// Deep gradient compression (Lin et al. 2018, arXiv:1712.01887): what this rank sends of its gradient, in place.
//   g = ranks * grad, scaled down to a norm of `limit` first (0: no limit);  g += weight_decay * param
//   velocity = mu * velocity + g;  residual += velocity
//   use_nesterov: velocity = mu * (velocity + g);  residual += velocity + g
//   message: the indices of the `kept` elements of residual that are farthest from 0, then these elements;
//   velocity and residual become 0 there
//   grad, param, velocity, residual f32 of one shape and layout;  message i32 [2 * the most of kept], of which the first 2 * kept are
//   sent: indices in memory, and the bits of f32
//   attributes: mu, use_nesterov, weight_decay, limit, ranks; rampup_begin_step, rampup_step, kept (rules/sparse_schedule.h)
// Of elements that are equally far from 0, those with smaller indices come first. Does nothing in steps that sum the whole gradient.
// Throws Error(config) when the shapes differ or an attribute is out of its range.
#include <fmt/format.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/sparse_schedule.h"
#include "runtime/ops/rules/updates.h"

namespace fleetrun::runtime::ops {
namespace {

void infer_select(Inference& op) {
  for (const char* name : {"grad", "velocity", "residual"}) expect_like_param(op, name);
  op.flag("use_nesterov");
  for (const char* attribute : {"mu", "weight_decay", "limit"})
    if (const double value = op.number(attribute); !(value >= 0))
      op.fail(fmt::format("{} is {}, must be 0 or more", attribute, value));
  if (op.integer("ranks") < 1) op.fail(fmt::format("ranks is {}, must be 1 or more", op.integer("ranks")));
  const SparseSchedule schedule = sparse_schedule_of(op, count_of(op.input("param").shape));
  op.set_output("message", {2 * schedule.most()}, DType::i32);
}

}  // namespace

OpDef dgc_select() {
  return {.inputs = {"grad", "param", "velocity", "residual"},
          .outputs = {"message", "velocity", "residual"},
          .infer = infer_select,
          .in_place = {"velocity", "residual"}};
}

}  // namespace fleetrun::runtime::ops
