// Batch normalisation in the layout that the image has: one look at the image for the statistics, one to normalise;
// backward one for the two sums, one for dx. Both looks go over a few channels before the next, where those lie together.
// Statistics and sums are put together image by image in f64, so they do not depend on the number of threads. oneDNN's
// sums in f32 are 3 times as far from the truth as PyTorch's (which is why its primitive is not used), and it looks at
// the image twice for the statistics.
#include "runtime/kernels/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::runtime::cpu {
namespace {

LayoutChoice like_image(const LayoutQuery& query, const Layout& image) {
  const Shape& shape = query.op.input("x").shape;
  const auto of = [&](const std::vector<ValueId>& ids) {
    std::vector<Layout> layouts(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != kNone && query.op.program().value(ids[i]).shape.size() == shape.size())
        layouts[i] = image;
    return layouts;
  };
  return {of(query.op.op().inputs), of(query.op.op().outputs)};
}

std::unique_ptr<Kernel> make_batch_norm(const OpView& op, Device&) {
  if (op.flag("training")) return std::make_unique<BatchNormTraining>(op);
  return std::make_unique<BatchNorm>(op);
}

}  // namespace

double factor_of(float scale, float variance, double epsilon) {
  return scale / std::sqrt(variance + epsilon);
}

BatchNorm::BatchNorm(const OpView& op)
    : units_(op, op.input("x")),
      arrays_(units_),
      x_(op.input_id("x")),
      y_(op.output_id("y")),
      scale_(op.input_id("scale")),
      bias_(op.input_id("bias")),
      mean_(op.input_id("mean")),
      variance_(op.input_id("variance")),
      epsilon_(op.number("epsilon")) {}

void BatchNorm::run(const RunContext& context) {
  // Channels that only fill up a block become 0, as oneDNN wants them.
  std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
  const auto lanes = [&](std::int64_t unit, ChannelFactor which, LaneFactors& same) {
    return units_.factors(unit, arrays_.factors(context.scratch, which), same);
  };
  units_.parts([&](const ChannelPart& part) {
    prepare(context, part);
    units_.each_from_back(part, [&](std::int64_t unit) {
      LaneFactors mean, factor, shift;
      const Affine affine = {lanes(unit, kMean, mean), lanes(unit, kFactor, factor),
                             lanes(unit, kShift, shift)};
      units_.rows(unit, [&](std::int64_t offset, const Rows& rows) { write(context, offset, rows, affine); });
    });
  });
}

void BatchNorm::prepare(const RunContext& context, const ChannelPart& part) {
  for (std::int64_t c = units_.first_channel(part); c < units_.last_channel(part); ++c)
    set_factors(context, c, at(context, mean_)[c], at(context, variance_)[c]);
}

void BatchNorm::write(const RunContext& context, std::int64_t offset, const Rows& rows,
                      const Affine& affine) const {
  normalise(units_.at(context, x_, offset), units_.at(context, y_, offset), rows, affine);
}

void BatchNorm::set_factors(const RunContext& context, std::int64_t c, float mean, float variance) const {
  arrays_.factors(context.scratch, kMean)[c] = mean;
  arrays_.factors(context.scratch, kFactor)[c] =
      static_cast<float>(factor_of(at(context, scale_)[c], variance, epsilon_));
  arrays_.factors(context.scratch, kShift)[c] = at(context, bias_)[c];
}

BatchNormTraining::BatchNormTraining(const OpView& op)
    : BatchNorm(op),
      batch_mean_(op.output_id("batch_mean")),
      batch_variance_(op.output_id("batch_variance")),
      keep_(static_cast<float>(op.number("momentum"))),
      take_(static_cast<float>(1.0 - op.number("momentum"))) {}

void BatchNormTraining::prepare(const RunContext& context, const ChannelPart& part) {
  image_moments(units_, part, arrays_, context, x_);
  total_moments(units_, part, arrays_, context.scratch);
  const auto count = static_cast<double>(units_.values_per_channel());
  for (std::int64_t c = units_.first_channel(part); c < units_.last_channel(part); ++c)
    take_statistics(context, c, static_cast<float>(arrays_.totals(context.scratch, 0)[c]),
                    static_cast<float>(arrays_.totals(context.scratch, 1)[c] / count));
}

void BatchNormTraining::take_statistics(const RunContext& context, std::int64_t c, float mean,
                                        float variance) const {
  const auto move = [&](float& running, float value) { running = running * keep_ + value * take_; };
  at(context, batch_mean_)[c] = mean;
  at(context, batch_variance_)[c] = variance;
  set_factors(context, c, mean, variance);
  move(at(context, mean_)[c], mean);
  move(at(context, variance_)[c], variance);
}

BatchNormBackward::BatchNormBackward(const OpView& op)
    : units_(op, op.input("x")),
      arrays_(units_),
      x_(op.input_id("x")),
      dy_(op.input_id("dy")),
      mean_(op.input_id("batch_mean")),
      variance_(op.input_id("batch_variance")),
      epsilon_(op.number("epsilon")) {}

void BatchNormBackward::plain_sums(const RunContext& context, std::int64_t unit, std::int64_t offset,
                                   const Rows& rows, const GradientSums& sums) const {
  LaneFactors mean;
  gradient_sums(units_.at(context, x_, offset), units_.at(context, dy_, offset), rows,
                lanes_of(context, unit, kMean, mean), sums);
}

void BatchNormBackward::plain_write(const RunContext& context, ValueId dx, std::int64_t offset,
                                    const Rows& rows, const InputGradient& gradient) const {
  input_gradient(units_.at(context, x_, offset), units_.at(context, dy_, offset),
                 units_.at(context, dx, offset), rows, gradient);
}

BatchNormGrad::BatchNormGrad(const OpView& op)
    : BatchNormBackward(op),
      scale_(op.input_id("scale")),
      dx_(op.output_id("dx")),
      dscale_(op.output_id("dscale")),
      dbias_(op.output_id("dbias")) {}

void BatchNormGrad::run(const RunContext& context) {
  std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
  units_.parts([&](const ChannelPart& part) {
    prepare(context, part);
    image_sums(units_, part, arrays_, context.scratch,
               [&](std::int64_t unit, std::int64_t offset, const Rows& rows, const GradientSums& of_rows) {
                 sums(context, unit, offset, rows, of_rows);
               });
    total_sums(units_, part, arrays_, context.scratch);
    finish_channels(context, part);
    units_.each_from_back(part, [&](std::int64_t unit) {
      each_rows(context, unit, [&](std::int64_t offset, const Rows& rows, const InputGradient& gradient) {
        write(context, unit, offset, rows, gradient);
      });
    });
  });
}

void copy_channels(const ChannelUnits& units, const ChannelPart& part, const float* from, float* to) {
  std::copy(from + units.first_channel(part), from + units.last_channel(part),
            to + units.first_channel(part));
}

void BatchNormGrad::prepare(const RunContext& context, const ChannelPart& part) {
  copy_channels(units_, part, at(context, mean_), arrays_.factors(context.scratch, kMean));
  float* const factor = arrays_.factors(context.scratch, kFactor);
  for (std::int64_t c = units_.first_channel(part); c < units_.last_channel(part); ++c)
    factor[c] = static_cast<float>(factor_for(context, scale_, c));
}

void BatchNormGrad::sums(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
                         const GradientSums& sums) const {
  plain_sums(context, unit, offset, rows, sums);
}

void BatchNormGrad::write(const RunContext& context, std::int64_t, std::int64_t offset, const Rows& rows,
                          const InputGradient& gradient) const {
  plain_write(context, dx_, offset, rows, gradient);
}

void BatchNormGrad::finish_channels(const RunContext& context, const ChannelPart& part) const {
  float* const shift = arrays_.factors(context.scratch, kShift);
  float* const slope = arrays_.factors(context.scratch, kSlope);
  const auto count = static_cast<double>(units_.values_per_channel());
  for (std::int64_t c = units_.first_channel(part); c < units_.last_channel(part); ++c) {
    const double inverse = inverse_of(context, c);
    const double sum = arrays_.totals(context.scratch, 0)[c];
    const double product = arrays_.totals(context.scratch, 1)[c];
    at(context, dbias_)[c] = static_cast<float>(sum);
    at(context, dscale_)[c] = static_cast<float>(product * inverse);
    shift[c] = static_cast<float>(sum / count);
    slope[c] = static_cast<float>(product * inverse * inverse / count);
  }
}

LayoutChoice choose_batch_norm(const LayoutQuery& query, Device&) {
  const Value& x = query.op.input("x");
  return like_image(query, channel_blocks(x) ? x.layout : Layout());
}

KernelDef batch_norm_kernel() { return {.choose_layouts = choose_batch_norm, .make = make_batch_norm}; }
KernelDef batch_norm_grad_kernel() {
  return {.choose_layouts = choose_batch_norm, .make = make_kernel<BatchNormGrad>};
}

}  // namespace fleetrun::runtime::cpu
