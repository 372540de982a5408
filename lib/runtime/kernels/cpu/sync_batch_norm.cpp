// batch_norm and batch_norm_grad cut in two where the sums of the other ranks come in. Within a rank sums are made in f64,
// as those of batch_norm are; they travel as f32.
#include <algorithm>

#include "runtime/kernels/cpu/batch_norm.h"

namespace fleetrun::runtime::cpu {
namespace {

// The vector [2 C + 1] that the ranks sum.
struct RankSums {
  float* first;
  float* second;
  float* count;

  RankSums(float* data, std::int64_t channels)
      : first(data), second(data + channels), count(data + 2 * channels) {}
};

class Sums : public Kernel {
 public:
  explicit Sums(const OpView& op)
      : units_(op, op.input("x")),
        arrays_(units_),
        x_(op.input_id("x")),
        mean_(op.input_id("mean")),
        sums_(op.output_id("sums")) {}

  std::size_t scratch_bytes() const override { return arrays_.bytes(); }

  void run(const RunContext& context) override {
    image_moments(units_, units_.whole(), arrays_, context, x_);
    total_moments(units_, units_.whole(), arrays_, context.scratch);
    const RankSums sums(at(context, sums_), units_.channels());
    const auto count = static_cast<double>(units_.values_per_channel());
    *sums.count = static_cast<float>(count);
    for (std::int64_t c = 0; c < units_.channels(); ++c) {
      const double apart = arrays_.totals(context.scratch, 0)[c] - at(context, mean_)[c];
      const double squares = arrays_.totals(context.scratch, 1)[c];
      sums.first[c] = static_cast<float>(count * apart);
      sums.second[c] = static_cast<float>(squares + count * apart * apart);
    }
  }

 private:
  ChannelUnits units_;
  ChannelArrays arrays_;
  ValueId x_, mean_, sums_;
};

class SyncBatchNorm : public BatchNormTraining {
 public:
  explicit SyncBatchNorm(const OpView& op) : BatchNormTraining(op), sums_(op.input_id("sums")) {}

 private:
  void prepare(const RunContext& context, const ChannelPart& part) override {
    const RankSums sums(at(context, sums_), units_.channels());
    const double count = *sums.count;
    for (std::int64_t c = units_.first_channel(part); c < units_.last_channel(part); ++c) {
      const double apart = sums.first[c] / count;
      const double variance = std::max(0.0, sums.second[c] / count - apart * apart);
      take_statistics(context, c, static_cast<float>(at(context, mean_)[c] + apart),
                      static_cast<float>(variance));
    }
  }

  ValueId sums_;
};

class GradSums : public BatchNormBackward {
 public:
  explicit GradSums(const OpView& op)
      : BatchNormBackward(op),
        sums_(op.output_id("sums")),
        dscale_(op.output_id("dscale")),
        dbias_(op.output_id("dbias")) {}

  void run(const RunContext& context) override {
    std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
    std::copy_n(at(context, mean_), units_.channels(), arrays_.factors(context.scratch, kMean));
    image_sums(units_, units_.whole(), arrays_, context.scratch,
               [&](std::int64_t unit, std::int64_t offset, const Rows& rows, const GradientSums& of_rows) {
                 plain_sums(context, unit, offset, rows, of_rows);
               });
    total_sums(units_, units_.whole(), arrays_, context.scratch);
    const RankSums sums(at(context, sums_), units_.channels());
    *sums.count = static_cast<float>(units_.values_per_channel());
    for (std::int64_t c = 0; c < units_.channels(); ++c) {
      const double sum = arrays_.totals(context.scratch, 0)[c];
      const double product = arrays_.totals(context.scratch, 1)[c];
      sums.first[c] = at(context, dbias_)[c] = static_cast<float>(sum);
      sums.second[c] = static_cast<float>(product);
      at(context, dscale_)[c] = static_cast<float>(product * inverse_of(context, c));
    }
  }

 private:
  ValueId sums_, dscale_, dbias_;
};

class SyncBatchNormGrad : public BatchNormBackward {
 public:
  explicit SyncBatchNormGrad(const OpView& op)
      : BatchNormBackward(op),
        scale_(op.input_id("scale")),
        sums_(op.input_id("sums")),
        dx_(op.output_id("dx")) {}

  void run(const RunContext& context) override {
    set_factors(context);
    units_.each(units_.whole(), [&](std::int64_t unit) {
      each_rows(context, unit, [&](std::int64_t offset, const Rows& rows, const InputGradient& gradient) {
        plain_write(context, dx_, offset, rows, gradient);
      });
    });
  }

 private:
  void set_factors(const RunContext& context) const {
    std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
    const RankSums sums(at(context, sums_), units_.channels());
    const double count = *sums.count;
    for (std::int64_t c = 0; c < units_.channels(); ++c) {
      const auto set = [&](ChannelFactor which, double value) {
        arrays_.factors(context.scratch, which)[c] = static_cast<float>(value);
      };
      const double inverse = inverse_of(context, c);
      set(kMean, at(context, mean_)[c]);
      set(kFactor, factor_for(context, scale_, c));
      set(kShift, sums.first[c] / count);
      set(kSlope, sums.second[c] * inverse * inverse / count);
    }
  }

  ValueId scale_, sums_, dx_;
};

template <typename Which>
KernelDef kernel() {
  return {.choose_layouts = choose_batch_norm, .make = make_kernel<Which>};
}

}  // namespace

KernelDef sync_batch_norm_sums_kernel() { return kernel<Sums>(); }
KernelDef sync_batch_norm_kernel() { return kernel<SyncBatchNorm>(); }
KernelDef sync_batch_norm_grad_sums_kernel() { return kernel<GradSums>(); }
KernelDef sync_batch_norm_grad_kernel() { return kernel<SyncBatchNormGrad>(); }

}  // namespace fleetrun::runtime::cpu
