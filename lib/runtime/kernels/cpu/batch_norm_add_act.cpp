#include "runtime/kernels/cpu/batch_norm.h"

namespace fleetrun::runtime::cpu {
namespace {

class BatchNormAddAct : public BatchNormTraining {
 public:
  explicit BatchNormAddAct(const OpView& op) : BatchNormTraining(op), z_(op.input_id("z")) {}

 private:
  void write(const RunContext& context, std::int64_t offset, const Rows& rows,
             const Affine& affine) const override {
    normalise_add_relu(units_.at(context, x_, offset), units_.at(context, z_, offset),
                       units_.at(context, y_, offset), rows, affine);
  }

  ValueId z_;
};

// The look at the image that forms the sums writes dz, which is what the other one makes dx of.
class BatchNormAddActGrad : public BatchNormGrad {
 public:
  explicit BatchNormAddActGrad(const OpView& op)
      : BatchNormGrad(op), y_(op.input_id("y")), dy_too_(op.input_id("dy_too")), dz_(op.output_id("dz")) {}

 private:
  void sums(const RunContext& context, std::int64_t unit, std::int64_t offset, const Rows& rows,
            const GradientSums& sums) const override {
    LaneFactors mean;
    masked_gradient_sums({.x = units_.at(context, x_, offset),
                          .y = units_.at(context, y_, offset),
                          .dy = units_.at(context, dy_, offset),
                          .dy_too = dy_too_ == kNone ? nullptr : units_.at(context, dy_too_, offset),
                          .dz = units_.at(context, dz_, offset)},
                         rows, lanes_of(context, unit, kMean, mean), sums);
  }

  void write(const RunContext& context, std::int64_t, std::int64_t offset, const Rows& rows,
             const InputGradient& gradient) const override {
    input_gradient(units_.at(context, x_, offset), units_.at(context, dz_, offset),
                   units_.at(context, dx_, offset), rows, gradient);
  }

  ValueId y_, dy_too_, dz_;
};

}  // namespace

KernelDef batch_norm_add_act_kernel() {
  return {.choose_layouts = choose_batch_norm, .make = make_kernel<BatchNormAddAct>};
}
KernelDef batch_norm_add_act_grad_kernel() {
  return {.choose_layouts = choose_batch_norm, .make = make_kernel<BatchNormAddActGrad>};
}

}  // namespace fleetrun::runtime::cpu
