// The kernels of batch_norm, which its fusions with what follows it take over: they differ in what is written beside or
// instead of y and dx, not in the statistics and sums.
#pragma once
#include "runtime/kernels/cpu/loops/channel_sums.h"

namespace fleetrun::runtime::cpu {

// What a run keeps of each channel in ChannelArrays::factors.
enum ChannelFactor { kMean, kFactor, kShift, kSlope, kBias };

// What a channel is multiplied with, scale / sqrt(variance + epsilon): alike forward and backward, to the last bit.
double factor_of(float scale, float variance, double epsilon);

// By the running statistics.
class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const OpView& op);
  std::size_t scratch_bytes() const override { return arrays_.bytes(); }
  void run(const RunContext& context) override;

 protected:
  // Finds the statistics of a part's channels and calls set_factors for each.
  virtual void prepare(const RunContext& context, const ChannelPart& part);
  virtual void write(const RunContext& context, std::int64_t offset, const Rows& rows,
                     const Affine& affine) const;

  void set_factors(const RunContext& context, std::int64_t c, float mean, float variance) const;

  ChannelUnits units_;
  ChannelArrays arrays_;
  ValueId x_, y_, scale_, bias_, mean_, variance_;
  double epsilon_;
};

// By the statistics of the batch; the running ones move towards them.
class BatchNormTraining : public BatchNorm {
 public:
  explicit BatchNormTraining(const OpView& op);

 protected:
  void prepare(const RunContext& context, const ChannelPart& part) override;

  // Of channel c: they are kept for the way back, the running ones move, and x is normalised by them.
  void take_statistics(const RunContext& context, std::int64_t c, float mean, float variance) const;

 private:
  ValueId batch_mean_, batch_variance_;
  float keep_, take_;
};

// What the kernels of the way back have in common.
class BatchNormBackward : public Kernel {
 public:
  std::size_t scratch_bytes() const override { return arrays_.bytes(); }

 protected:
  explicit BatchNormBackward(const OpView& op);

  // Of the lanes of a unit.
  const float* lanes_of(const RunContext& context, std::int64_t unit, ChannelFactor which,
                        LaneFactors& same) const {
    return units_.factors(unit, arrays_.factors(context.scratch, which), same);
  }
  double inverse_of(const RunContext& context, std::int64_t c) const {
    return factor_of(1.0F, at(context, variance_)[c], epsilon_);
  }
  double factor_for(const RunContext& context, ValueId scale, std::int64_t c) const {
    return factor_of(at(context, scale)[c], at(context, variance_)[c], epsilon_);
  }

  // The sums of dy and of dy * (x - mean) over rows, by kMean.
  void plain_sums(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
                  const GradientSums& sums) const;
  // dx of rows.
  void plain_write(const RunContext& context, ValueId dx, std::int64_t offset, const Rows& rows,
                   const InputGradient& gradient) const;
  // Calls write(offset, rows, gradient) for the rows of a unit, with its kMean, kFactor, kShift and kSlope.
  template <typename Write>
  void each_rows(const RunContext& context, std::int64_t unit, const Write& write) const {
    LaneFactors mean, factor, shift, slope;
    const InputGradient gradient = {
        lanes_of(context, unit, kMean, mean), lanes_of(context, unit, kFactor, factor),
        lanes_of(context, unit, kShift, shift), lanes_of(context, unit, kSlope, slope)};
    units_.rows(unit, [&](std::int64_t offset, const Rows& rows) { write(offset, rows, gradient); });
  }

  ChannelUnits units_;
  ChannelArrays arrays_;
  ValueId x_, dy_, mean_, variance_;
  double epsilon_;
};

class BatchNormGrad : public BatchNormBackward {
 public:
  explicit BatchNormGrad(const OpView& op);
  void run(const RunContext& context) override;

 protected:
  // kMean and kFactor of each channel of a part.
  virtual void prepare(const RunContext& context, const ChannelPart& part);
  virtual void sums(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
                    const GradientSums& sums) const;
  virtual void write(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
                     const InputGradient& gradient) const;

  ValueId scale_, dx_, dscale_, dbias_;

 private:
  // kShift and kSlope, dscale and dbias
  void finish_channels(const RunContext& context, const ChannelPart& part) const;
};

// What is of `part` in an array with a place for each channel.
void copy_channels(const ChannelUnits& units, const ChannelPart& part, const float* from, float* to);

// The image as x lies, plain where that is a layout without channels side by side; what is of each channel plain.
LayoutChoice choose_batch_norm(const LayoutQuery& query, Device&);

}  // namespace fleetrun::runtime::cpu
