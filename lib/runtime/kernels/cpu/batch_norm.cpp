// Batch normalisation in the layout that the image has: one look at the image for the statistics, one to normalise;
// backward one for the two sums, one for dx. Statistics and sums are put together image by image in f64, so they do not
// depend on the number of threads. oneDNN's sums in f32 are 3 times as far from the truth as PyTorch's (which is why
// its primitive is not used), and it looks at the image twice for the statistics.
#include <algorithm>
#include <cmath>
#include <span>

#include "runtime/kernels/cpu/channel_blocks.h"
#include "runtime/kernels/cpu/channel_rows.h"
#include "runtime/kernels/cpu/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

// Parts of an image that are looked at by themselves: the channels of one image that lie side by side, up to kLanes;
// in a plain image one channel, whose pixels are taken as rows of kLanes.
class Units {
 public:
  Units(const OpView& op, const Value& image)
      : images_(image.shape[0]), channels_(image.shape[1]), pixels_(image.shape[2] * image.shape[3]) {
    elements_of(op, image);
    const ChannelBlocks blocks = *channel_blocks(image);
    inner_ = blocks.inner;
    groups_ = (inner_ + kLanes - 1) / kLanes;
    per_image_ = blocks.outer / images_ * groups_;
  }

  std::int64_t images() const { return images_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t pixels() const { return pixels_; }
  std::int64_t values_per_channel() const { return images_ * pixels_; }
  // Of an array with a place for each channel: those that only fill up a block, and a whole row, included.
  std::int64_t padded_channels() const { return per_image_ / groups_ * inner_ + kLanes; }
  bool one_channel() const { return inner_ == 1; }

  std::int64_t image_of(std::int64_t unit) const { return unit / per_image_; }
  std::int64_t channel_of(std::int64_t unit) const {
    const std::int64_t place = unit % per_image_;
    return place / groups_ * inner_ + place % groups_ * kLanes;
  }

  // body(offset of the first float, rows) for the rows of a unit, a last one that is not full by itself.
  template <typename Body>
  void rows(std::int64_t unit, Body&& body) const {
    const std::int64_t block = unit / groups_, lane = unit % groups_ * kLanes;
    const std::int64_t offset = block * pixels_ * inner_ + lane;
    if (!one_channel()) {
      body(offset, Rows{pixels_, inner_, static_cast<int>(std::min<std::int64_t>(kLanes, inner_ - lane))});
      return;
    }
    const std::int64_t full = pixels_ / kLanes, rest = pixels_ % kLanes;
    if (full > 0) body(offset, Rows{.count = full});
    if (rest > 0) body(offset + full * kLanes, Rows{.count = 1, .lanes = static_cast<int>(rest)});
  }

  // body(unit) for all units, on the threads of the team.
  template <typename Body>
  void parallel(Body&& body) const {
    const std::int64_t floats = pixels_ * (one_channel() ? 1 : std::min<std::int64_t>(inner_, kLanes));
    parallel_for(images_ * per_image_, kElementsPerThread / floats,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t unit = begin; unit < end; ++unit) body(unit);
                 });
  }

  // What the lanes of a unit take from an array with a place for each channel.
  LaneFactors factors(std::int64_t unit, const float* of_channels) const {
    LaneFactors factors;
    const float* const first = of_channels + channel_of(unit);
    if (one_channel())
      factors.fill(*first);
    else
      std::copy_n(first, kLanes, factors.begin());
    return factors;
  }

 private:
  std::int64_t images_, channels_, pixels_;
  std::int64_t inner_ = 1;      // channels side by side
  std::int64_t groups_ = 1;     // of kLanes among those
  std::int64_t per_image_ = 0;  // units
};

// Arrays in scratch memory. f64: of each image and channel, and of each channel; f32: of each channel.
class Arrays {
 public:
  explicit Arrays(const Units& units) : images_(units.images()), padded_(units.padded_channels()) {}

  std::size_t bytes() const {
    return static_cast<std::size_t>(padded_) *
           (kSums * static_cast<std::size_t>(images_ + 1) * sizeof(double) + kFactors * sizeof(float));
  }
  // Two sums: `which` is 0 or 1. Row `image` of it; the row behind the last image is the total.
  double* sums(void* scratch, int which, std::int64_t image) const {
    return static_cast<double*>(scratch) + (which * (images_ + 1) + image) * padded_;
  }
  double* totals(void* scratch, int which) const { return sums(scratch, which, images_); }
  float* factors(void* scratch, int which) const {
    return reinterpret_cast<float*>(sums(scratch, kSums, 0)) + which * padded_;
  }
  std::span<float> all_factors(void* scratch) const {
    return {factors(scratch, 0), static_cast<std::size_t>(kFactors * padded_)};
  }

 private:
  static constexpr int kSums = 2, kFactors = 4;
  std::int64_t images_, padded_;
};

// The moments of one channel whose values lie in rows.
class OneChannel {
 public:
  void add(const Moments& moments, const Rows& rows) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.lanes); ++i)
      pieces_[size_++] = {static_cast<double>(rows.count), moments.mean[i], moments.squares[i]};
  }
  double mean() const {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      sum += pieces_[i].count * pieces_[i].mean;
      count += pieces_[i].count;
    }
    return sum / count;
  }
  double squares(double mean) const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const double apart = pieces_[i].mean - mean;
      sum += pieces_[i].squares + pieces_[i].count * apart * apart;
    }
    return sum;
  }

 private:
  struct Piece {
    double count = 0, mean = 0, squares = 0;
  };
  std::array<Piece, 2 * kLanes> pieces_;
  std::size_t size_ = 0;
};

// Of each image and channel: mean (0) and sum of squares (1).
void image_moments(const Units& units, const Arrays& arrays, const float* x, void* scratch) {
  units.parallel([&](std::int64_t unit) {
    double* const mean = arrays.sums(scratch, 0, units.image_of(unit)) + units.channel_of(unit);
    double* const squares = arrays.sums(scratch, 1, units.image_of(unit)) + units.channel_of(unit);
    OneChannel channel;
    units.rows(unit, [&](std::int64_t offset, const Rows& rows) {
      const Moments moments = moments_of(x + offset, rows);
      if (units.one_channel()) return channel.add(moments, rows);
      std::copy_n(moments.mean.begin(), rows.lanes, mean);
      std::copy_n(moments.squares.begin(), rows.lanes, squares);
    });
    if (!units.one_channel()) return;
    *mean = channel.mean();
    *squares = channel.squares(*mean);
  });
}

// Of each channel over all images, from those of each image: mean (0) and sum of squares (1).
void total_moments(const Units& units, const Arrays& arrays, void* scratch) {
  double* const mean = arrays.totals(scratch, 0);
  double* const squares = arrays.totals(scratch, 1);
  const auto images = static_cast<double>(units.images()), pixels = static_cast<double>(units.pixels());
  std::fill_n(mean, units.channels(), 0.0);
  std::fill_n(squares, units.channels(), 0.0);
  for (std::int64_t image = 0; image < units.images(); ++image) {
    const double* const part = arrays.sums(scratch, 0, image);
    for (std::int64_t c = 0; c < units.channels(); ++c) mean[c] += part[c];
  }
  for (std::int64_t c = 0; c < units.channels(); ++c) mean[c] /= images;
  for (std::int64_t image = 0; image < units.images(); ++image) {
    const double* const part_mean = arrays.sums(scratch, 0, image);
    const double* const part_squares = arrays.sums(scratch, 1, image);
    for (std::int64_t c = 0; c < units.channels(); ++c) {
      const double apart = part_mean[c] - mean[c];
      squares[c] += part_squares[c] + pixels * apart * apart;
    }
  }
}

void total_sums(const Units& units, const Arrays& arrays, void* scratch) {
  for (const int which : {0, 1}) {
    double* const total = arrays.totals(scratch, which);
    std::fill_n(total, units.channels(), 0.0);
    for (std::int64_t image = 0; image < units.images(); ++image) {
      const double* const part = arrays.sums(scratch, which, image);
      for (std::int64_t c = 0; c < units.channels(); ++c) total[c] += part[c];
    }
  }
}

class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const OpView& op)
      : units_(op, op.input("x")),
        arrays_(units_),
        x_(op.input_id("x")),
        y_(op.output_id("y")),
        scale_(op.input_id("scale")),
        bias_(op.input_id("bias")),
        mean_(op.input_id("mean")),
        variance_(op.input_id("variance")),
        epsilon_(op.number("epsilon")) {}

  std::size_t scratch_bytes() const override { return arrays_.bytes(); }

  void run(const RunContext& context) override {
    prepare(context);
    const float* const mean = arrays_.factors(context.scratch, 0);
    const float* const factor = arrays_.factors(context.scratch, 1);
    const float* const shift = arrays_.factors(context.scratch, 2);
    units_.parallel([&](std::int64_t unit) {
      const LaneFactors m = units_.factors(unit, mean), f = units_.factors(unit, factor),
                        s = units_.factors(unit, shift);
      units_.rows(unit, [&](std::int64_t offset, const Rows& rows) {
        normalise(at(context, x_) + offset, at(context, y_) + offset, rows, m, f, s);
      });
    });
  }

 protected:
  // By the running statistics. Channels that only fill up a block become 0, as oneDNN wants them.
  virtual void prepare(const RunContext& context) {
    std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
    for (std::int64_t c = 0; c < units_.channels(); ++c)
      set_factors(context, c, at(context, mean_)[c], at(context, variance_)[c]);
  }

  void set_factors(const RunContext& context, std::int64_t c, double mean, double variance) const {
    arrays_.factors(context.scratch, 0)[c] = static_cast<float>(mean);
    arrays_.factors(context.scratch, 1)[c] =
        static_cast<float>(at(context, scale_)[c] / std::sqrt(variance + epsilon_));
    arrays_.factors(context.scratch, 2)[c] = at(context, bias_)[c];
  }

  Units units_;
  Arrays arrays_;
  ValueId x_, y_, scale_, bias_, mean_, variance_;
  double epsilon_;
};

// By the statistics of the batch; the running ones move towards them.
class BatchNormTraining : public BatchNorm {
 public:
  explicit BatchNormTraining(const OpView& op)
      : BatchNorm(op),
        batch_mean_(op.output_id("batch_mean")),
        batch_variance_(op.output_id("batch_variance")),
        keep_(static_cast<float>(op.number("momentum"))),
        take_(static_cast<float>(1.0 - op.number("momentum"))) {}

 private:
  void prepare(const RunContext& context) override {
    image_moments(units_, arrays_, at(context, x_), context.scratch);
    total_moments(units_, arrays_, context.scratch);
    std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
    for (std::int64_t c = 0; c < units_.channels(); ++c) {
      const double mean = arrays_.totals(context.scratch, 0)[c];
      const double variance =
          arrays_.totals(context.scratch, 1)[c] / static_cast<double>(units_.values_per_channel());
      set_factors(context, c, mean, variance);
      keep(context, c, mean_, batch_mean_, mean);
      keep(context, c, variance_, batch_variance_, variance);
    }
  }

  void keep(const RunContext& context, std::int64_t c, ValueId running, ValueId batch, double value) const {
    float& moved = at(context, running)[c];
    at(context, batch)[c] = static_cast<float>(value);
    moved = moved * keep_ + static_cast<float>(value) * take_;
  }

  ValueId batch_mean_, batch_variance_;
  float keep_, take_;
};

class BatchNormGrad : public Kernel {
 public:
  explicit BatchNormGrad(const OpView& op)
      : units_(op, op.input("x")),
        arrays_(units_),
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        scale_(op.input_id("scale")),
        mean_(op.input_id("batch_mean")),
        variance_(op.input_id("batch_variance")),
        dx_(op.output_id("dx")),
        dscale_(op.output_id("dscale")),
        dbias_(op.output_id("dbias")),
        epsilon_(op.number("epsilon")) {}

  std::size_t scratch_bytes() const override { return arrays_.bytes(); }

  void run(const RunContext& context) override {
    std::ranges::fill(arrays_.all_factors(context.scratch), 0.0F);
    float* const mean = arrays_.factors(context.scratch, 0);
    std::copy_n(at(context, mean_), units_.channels(), mean);
    image_sums(context, mean);
    total_sums(units_, arrays_, context.scratch);
    float* const factor = arrays_.factors(context.scratch, 1);
    float* const shift = arrays_.factors(context.scratch, 2);
    float* const slope = arrays_.factors(context.scratch, 3);
    const auto count = static_cast<double>(units_.values_per_channel());
    for (std::int64_t c = 0; c < units_.channels(); ++c) {
      const double inverse = 1 / std::sqrt(at(context, variance_)[c] + epsilon_);
      const double sum = arrays_.totals(context.scratch, 0)[c];
      const double product = arrays_.totals(context.scratch, 1)[c];
      at(context, dbias_)[c] = static_cast<float>(sum);
      at(context, dscale_)[c] = static_cast<float>(product * inverse);
      factor[c] = static_cast<float>(at(context, scale_)[c] * inverse);
      shift[c] = static_cast<float>(sum / count);
      slope[c] = static_cast<float>(product * inverse * inverse / count);
    }
    units_.parallel([&](std::int64_t unit) {
      const LaneFactors m = units_.factors(unit, mean), f = units_.factors(unit, factor),
                        s = units_.factors(unit, shift), k = units_.factors(unit, slope);
      units_.rows(unit, [&](std::int64_t offset, const Rows& rows) {
        input_gradient(at(context, x_) + offset, at(context, dy_) + offset, at(context, dx_) + offset, rows,
                       m, f, s, k);
      });
    });
  }

 private:
  // Of each image and channel: dy (0), and dy * (x - mean) (1).
  void image_sums(const RunContext& context, const float* mean) const {
    units_.parallel([&](std::int64_t unit) {
      double* const dy = arrays_.sums(context.scratch, 0, units_.image_of(unit)) + units_.channel_of(unit);
      double* const dy_x = arrays_.sums(context.scratch, 1, units_.image_of(unit)) + units_.channel_of(unit);
      const LaneFactors m = units_.factors(unit, mean);
      if (units_.one_channel()) *dy = *dy_x = 0;
      units_.rows(unit, [&](std::int64_t offset, const Rows& rows) {
        const GradientSums sums = gradient_sums(at(context, x_) + offset, at(context, dy_) + offset, rows, m);
        for (int i = 0; i < rows.lanes; ++i) {
          const auto lane = static_cast<std::size_t>(i);
          if (units_.one_channel()) {
            *dy += sums.dy[lane];
            *dy_x += sums.dy_x[lane];
          } else {
            dy[i] = sums.dy[lane];
            dy_x[i] = sums.dy_x[lane];
          }
        }
      });
    });
  }

  Units units_;
  Arrays arrays_;
  ValueId x_, dy_, scale_, mean_, variance_, dx_, dscale_, dbias_;
  double epsilon_;
};

// As x lies; plain where that is a layout without channels side by side.
Layout image_layout(const LayoutQuery& query) {
  const Value& x = query.op.input("x");
  return channel_blocks(x) ? x.layout : Layout();
}

LayoutChoice choose_batch_norm(const LayoutQuery& query, Device&) {
  const Layout image = image_layout(query);
  return {{image, Layout(), Layout(), Layout(), Layout()}, {image, Layout(), Layout(), Layout(), Layout()}};
}

LayoutChoice choose_batch_norm_grad(const LayoutQuery& query, Device&) {
  const Layout image = image_layout(query);
  return {{image, image, Layout(), Layout(), Layout()}, {image, Layout(), Layout()}};
}

std::unique_ptr<Kernel> make_batch_norm(const OpView& op, Device&) {
  if (op.flag("training")) return std::make_unique<BatchNormTraining>(op);
  return std::make_unique<BatchNorm>(op);
}

std::unique_ptr<Kernel> make_batch_norm_grad(const OpView& op, Device&) {
  return std::make_unique<BatchNormGrad>(op);
}

}  // namespace

KernelDef batch_norm_kernel() { return {.choose_layouts = choose_batch_norm, .make = make_batch_norm}; }
KernelDef batch_norm_grad_kernel() {
  return {.choose_layouts = choose_batch_norm_grad, .make = make_batch_norm_grad};
}

}  // namespace fleetrun::runtime::cpu
