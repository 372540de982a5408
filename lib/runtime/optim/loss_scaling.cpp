#include "runtime/optim/loss_scaling.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {
namespace {

const std::string kScale(kLossScale);
const std::string kGood = "loss_scaling.good_steps", kBad = "loss_scaling.bad_steps";
const std::string kOverflow = "overflow";

const std::string kUpdate = "update_loss_scaling";
const std::string kIncrEvery = "incr_every_n_steps", kDecrEvery = "decr_every_n_nan_or_inf";

ValueId constant(Builder& builder, const std::string& name, double value, Role role) {
  return builder
      .add(
          {.type = "fill", .attributes = {{"shape", Shape{1}}, {"value", value}}, .role = role, .name = name})
      .front();
}

// As it is made and travels, and as optimizers read it.
struct CastGradient {
  ValueId made = kNone;
  ValueId wide = kNone;
};

bool is_gradient(const Program& program, ValueId id) { return program.value(id).kind == ValueKind::gradient; }

// Takes the casts that make gradients out of the backward part.
std::vector<CastGradient> take_casts(Program& program) {
  std::vector<CastGradient> gradients;
  for (const ValueId id : program.of_kind(ValueKind::gradient)) gradients.push_back({id, id});
  std::erase_if(program.ops, [&](const Op& op) {
    if (op.type != "cast" || !is_gradient(program, op.outputs.front())) return false;
    const ValueId made = op.inputs.front(), wide = op.outputs.front();
    for (CastGradient& gradient : gradients)
      if (gradient.wide == wide) gradient.made = made;
    program.value(made).kind = ValueKind::gradient;
    program.value(made).of = program.value(wide).of;
    program.value(wide).kind = ValueKind::activation;  // what it is the gradient of stays with it
    return true;
  });
  std::sort(gradients.begin(), gradients.end(),
            [](const CastGradient& a, const CastGradient& b) { return a.made < b.made; });
  return gradients;
}

void add_cast(Program& program, const CastGradient& gradient) {
  program.ops.push_back({.type = "cast",
                         .inputs = {gradient.made},
                         .outputs = {gradient.wide},
                         .attributes = {{"dtype", std::string("f32")}},
                         .role = Role::optimize});
}

// A gradient that needs no cast gets a value without the scale, too.
void name_unscaled(Program& program, CastGradient& gradient) {
  if (gradient.wide != gradient.made) return;
  const Value& made = program.value(gradient.made);
  gradient.wide = program.add_value({.name = made.name + ".unscaled", .shape = made.shape, .of = made.of});
}

void add_check(Program& program, std::span<const CastGradient> gradients, ValueId scale, ValueId overflow) {
  Op op = {.type = "check_finite_and_unscale", .role = Role::optimize};
  for (const CastGradient& gradient : gradients) {
    op.inputs.push_back(gradient.made);
    op.outputs.push_back(gradient.wide);
  }
  op.inputs.insert(op.inputs.end(), {scale, overflow});
  op.outputs.push_back(overflow);
  program.ops.push_back(std::move(op));
}

void add_zero(Program& program, std::span<const CastGradient> gradients, ValueId overflow) {
  Op op = {.type = "zero_on_overflow", .role = Role::optimize};
  for (const CastGradient& gradient : gradients) op.inputs.push_back(gradient.wide);
  op.outputs = op.inputs;
  op.inputs.push_back(overflow);
  program.ops.push_back(std::move(op));
}

// add(some of them), one by one or all at once.
template <typename Add>
void each(const std::vector<CastGradient>& gradients, bool one_by_one, Add&& add) {
  const std::span<const CastGradient> all(gradients);
  if (!one_by_one) return add(all);
  for (std::size_t i = 0; i < all.size(); ++i) add(all.subspan(i, 1));
}

void append_update(Builder& builder, const job::AmpSpec& amp, ValueId scale, ValueId overflow) {
  const auto count = [&](const std::string& name) { return builder.state(name, {1}, {}, kNone); };
  builder.add(
      {.type = kUpdate,
       .inputs = {{"found", overflow}, {"scale", scale}, {"good", count(kGood)}, {"bad", count(kBad)}},
       .attributes = {{kIncrEvery, std::int64_t{amp.incr_every_n_steps}},
                      {kDecrEvery, std::int64_t{amp.decr_every_n_nan_or_inf}},
                      {"incr_ratio", amp.incr_ratio},
                      {"decr_ratio", amp.decr_ratio}},
       .role = Role::optimize});
}

}  // namespace

bool scales_loss(const job::AmpSpec& amp) {
  return amp.use_dynamic_loss_scaling || amp.init_loss_scaling != 1.0;
}

std::string describe_scaling(const job::AmpSpec& amp) {
  if (!scales_loss(amp)) return "the loss is not scaled";
  return fmt::format("the loss scale {} {}", amp.use_dynamic_loss_scaling ? "starts at" : "is",
                     amp.init_loss_scaling);
}

ValueId append_scaled_loss(Builder& builder, ValueId loss, const job::AmpSpec& amp) {
  if (!scales_loss(amp)) return loss;
  const ValueId scale = amp.use_dynamic_loss_scaling
                            ? builder.state(kScale, {1}, {.value = amp.init_loss_scaling}, kNone)
                            : constant(builder, kScale, amp.init_loss_scaling, Role::forward);
  return builder.op(builder.program().value(loss).name + ".scaled", "scale_loss",
                    {{"x", loss}, {"scale", scale}});
}

std::vector<ValueId> append_gradient_casts(Builder& builder, const job::AmpSpec& amp,
                                           const GradientUse& use) {
  Program& program = builder.program();
  std::vector<CastGradient> gradients = take_casts(program);
  if (scales_loss(amp)) {
    const ValueId scale = program.find(kLossScale);
    const ValueId overflow = constant(builder, kOverflow, 0, Role::optimize);
    for (CastGradient& gradient : gradients) name_unscaled(program, gradient);
    each(gradients, use.one_by_one, [&](auto some) { add_check(program, some, scale, overflow); });
    if (amp.use_dynamic_loss_scaling) {
      append_update(builder, amp, scale, overflow);
      each(gradients, use.zero_one_by_one, [&](auto some) { add_zero(program, some, overflow); });
    }
  } else {
    for (const CastGradient& gradient : gradients)
      if (gradient.wide != gradient.made) add_cast(program, gradient);
  }
  std::vector<ValueId> wide;
  wide.reserve(gradients.size());
  for (const CastGradient& gradient : gradients) wide.push_back(gradient.wide);
  return wide;
}

std::vector<ScaleCount> loss_scale_counts(const Program& program) {
  std::vector<ScaleCount> counts;
  for (const Op& op : program.ops) {
    if (op.type != kUpdate) continue;
    const OpView update(find_op(all_ops(), op.type), program, op);
    counts.push_back({update.input_id("good"), update.integer(kIncrEvery)});
    counts.push_back({update.input_id("bad"), update.integer(kDecrEvery)});
  }
  return counts;
}

}  // namespace fleetrun::runtime
