// Loss scaling in a program: the loss times the scale before the backward part is appended; after it, and after what
// brings the gradients of all ranks together, the scale is taken out of the gradients, overflow is found and the scale
// follows it. None of it knows which narrow type it is for.
//
//   scale_loss x=loss scale=loss_scaling -> loss.scaled         (backward starts there)
//   fill -> overflow;  check_finite_and_unscale x=w.cast_bf16@GRAD -> out=w@GRAD found=overflow;  ...
//   update_loss_scaling found=overflow -> scale=loss_scaling ...   (dynamic)
//   zero_on_overflow grad=w@GRAD,... found=overflow                (dynamic)
//
// A static scale is a constant; what overflow does to the gradients then reaches the weights. A static scale of 1
// does not scale.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

constexpr std::string_view kLossScale = "loss_scaling";  // the state of a dynamic scale

bool scales_loss(const job::AmpSpec& amp);
std::string describe_scaling(const job::AmpSpec& amp);  // "the loss scale starts at 32768"

// The value to differentiate.
ValueId append_scaled_loss(Builder& builder, ValueId loss, const job::AmpSpec& amp);

struct GradientUse {
  bool one_by_one =
      false;  // each gradient by itself, so that those that are there need not wait for the others
  bool zero_one_by_one = false;  // and where every rank has only some of them
};

// After the backward part. The gradients that optimizers read, in f32, in the order in which they are made: those of
// parameters that were cast were ValueKind::gradient, and now what is cast is, which is what travels between the ranks.
std::vector<ValueId> append_gradient_casts(Builder& builder, const job::AmpSpec& amp, const GradientUse& use);

// A state that counts steps in a row, and the count at which the scale moves (and the count is 0 again).
struct ScaleCount {
  ValueId steps = kNone;
  std::int64_t moves_at = 0;
};

// Of good steps and of overflows; none where no scale follows overflows.
std::vector<ScaleCount> loss_scale_counts(const Program& program);

}  // namespace fleetrun::runtime
