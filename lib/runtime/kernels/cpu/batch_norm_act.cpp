#include "runtime/kernels/cpu/batch_norm.h"

namespace fleetrun::runtime::cpu {
namespace {

class BatchNormAct : public BatchNormTraining {
 public:
  using BatchNormTraining::BatchNormTraining;

 private:
  void write(const RunContext& context, std::int64_t offset, const Rows& rows,
             const Affine& affine) const override {
    normalise_relu(units_.at(context, x_, offset), units_.at(context, y_, offset), rows, affine);
  }
};

// Both looks at the image find out from x which of dy count: that costs less than reading y, or writing dy again.
class BatchNormActGrad : public BatchNormGrad {
 public:
  explicit BatchNormActGrad(const OpView& op) : BatchNormGrad(op), bias_(op.input_id("bias")) {}

 private:
  void prepare(const RunContext& context, const ChannelPart& part) override {
    BatchNormGrad::prepare(context, part);
    copy_channels(units_, part, at(context, bias_), arrays_.factors(context.scratch, kBias));
  }

  void sums(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
            const GradientSums& sums) const override {
    LaneFactors mean, factor, bias;
    relu_gradient_sums(units_.at(context, x_, offset), units_.at(context, dy_, offset), rows,
                       {lanes_of(context, unit, kMean, mean), lanes_of(context, unit, kFactor, factor),
                        lanes_of(context, unit, kBias, bias)},
                       sums);
  }

  void write(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
             const InputGradient& gradient) const override {
    LaneFactors bias;
    relu_input_gradient(units_.at(context, x_, offset), units_.at(context, dy_, offset),
                        units_.at(context, dx_, offset), rows, gradient,
                        lanes_of(context, unit, kBias, bias));
  }

  ValueId bias_;
};

}  // namespace

KernelDef batch_norm_act_kernel() {
  return {.choose_layouts = choose_batch_norm, .make = make_kernel<BatchNormAct>};
}
KernelDef batch_norm_act_grad_kernel() {
  return {.choose_layouts = choose_batch_norm, .make = make_kernel<BatchNormActGrad>};
}

}  // namespace fleetrun::runtime::cpu
