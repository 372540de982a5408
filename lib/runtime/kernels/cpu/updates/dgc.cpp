// Kernels of deep gradient compression: what a rank sends, what it makes of what all ranks sent, and the update.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/momentum_loop.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"
#include "runtime/ops/rules/sparse_schedule.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr int kLowBits = 19;  // of a float, below sign, exponent and 4 bits of the fraction
constexpr std::size_t kBins = std::size_t{1} << (31 - kLowBits);

// The bits of |x|: in the order of the numbers.
std::uint32_t magnitude(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU; }

// The bits of the count-th largest magnitude, and how many elements are larger. `candidates`: room for as many as there are elements.
struct Threshold {
  std::uint32_t bits = 0;
  std::int64_t larger = 0;
};
Threshold find_threshold(const float* x, std::int64_t elements, std::int64_t count,
                         std::uint32_t* candidates) {
  std::vector<std::int64_t> bins(kBins, 0);
  for (std::int64_t i = 0; i < elements; ++i) ++bins[magnitude(x[i]) >> kLowBits];
  std::size_t bin = kBins - 1;
  std::int64_t above = 0;  // elements in higher bins
  for (; above + bins[bin] < count; --bin) above += bins[bin];
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < elements; ++i)
    if (const std::uint32_t bits = magnitude(x[i]); bits >> kLowBits == bin) candidates[found++] = bits;
  std::uint32_t* const wanted = candidates + (count - above - 1);
  std::nth_element(candidates, wanted, candidates + found, std::greater<>());
  const auto larger = std::count_if(candidates, wanted, [&](std::uint32_t bits) { return bits > *wanted; });
  return {*wanted, above + larger};
}

struct Accumulation {
  const float* param;
  const float* grad;
  float* velocity;
  float* residual;
  float scale, mu, decay;
};

FLEETRUN_VECTOR_LOOP void accumulate_range(const Accumulation& with, std::int64_t begin, std::int64_t end) {
  const float scale = with.scale, mu = with.mu, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = scale * with.grad[i] + decay * with.param[i];
    const float v = mu * with.velocity[i] + g;
    with.velocity[i] = v;
    with.residual[i] += v;
  }
}

FLEETRUN_VECTOR_LOOP void accumulate_nesterov_range(const Accumulation& with, std::int64_t begin,
                                                    std::int64_t end) {
  const float scale = with.scale, mu = with.mu, decay = with.decay;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = scale * with.grad[i] + decay * with.param[i];
    const float v = mu * (with.velocity[i] + g);
    with.velocity[i] = v;
    with.residual[i] += v + g;
  }
}

// More than ten members: the values of the op, and the constants of its formula.
class DgcSelect : public Kernel {
 public:
  explicit DgcSelect(const OpView& op)
      : schedule_(ops::sparse_schedule_of(op, count_of(op.input("param").shape))),
        norm_(op, {"grad"}),
        elements_(elements_of(op, op.input("param"))),
        grad_(op.input_id("grad")),
        param_(op.input_id("param")),
        velocity_(op.input_id("velocity")),
        residual_(op.input_id("residual")),
        message_(op.output_id("message")),
        ranks_(static_cast<double>(op.integer("ranks"))),
        limit_(op.number("limit")),
        constants_{.mu = static_cast<float>(op.number("mu")),
                   .decay = static_cast<float>(op.number("weight_decay"))},
        accumulate_(op.flag("use_nesterov") ? vector_clones<accumulate_nesterov_range>
                                            : vector_clones<accumulate_range>) {}

  std::size_t scratch_bytes() const override {
    return std::max(norm_.scratch_bytes(), static_cast<std::size_t>(elements_) * sizeof(std::uint32_t));
  }

  void run(const RunContext& context) override {
    const std::int64_t kept = schedule_.kept_in(static_cast<std::int64_t>(context.step));
    if (kept == 0) return;
    Accumulation with = constants_;
    with.param = at(context, param_);
    with.grad = at(context, grad_);
    with.velocity = at(context, velocity_);
    with.residual = at(context, residual_);
    with.scale = static_cast<float>(ranks_ * clip_factor(context));
    parallel_for(elements_, kElementsPerThread,
                 [&](std::int64_t begin, std::int64_t end) { accumulate_(with, begin, end); });
    select(with, kept, at<std::int32_t>(context, message_), static_cast<std::uint32_t*>(context.scratch));
  }

 private:
  double clip_factor(const RunContext& context) const {
    if (limit_ == 0) return 1;
    norm_.sum(context,
              [](std::size_t, const std::array<float*, 1>& data, std::int64_t begin, std::int64_t end) {
                return TwoSums{.first = vector_clones<squares_of>(data[0] + begin, end - begin)};
              });
    const double norm = std::sqrt(norm_.sums_of(context, 0).first);
    return norm <= limit_ ? 1 : limit_ / norm;
  }

  // Takes the elements out of the residual and the velocity.
  void select(const Accumulation& from, std::int64_t kept, std::int32_t* message,
              std::uint32_t* scratch) const {
    const Threshold threshold = find_threshold(from.residual, elements_, kept, scratch);
    std::int64_t equal = kept - threshold.larger, next = 0;  // of those at the threshold, the first ones
    for (std::int64_t i = 0; i < elements_ && next < kept; ++i) {
      const std::uint32_t bits = magnitude(from.residual[i]);
      if (bits < threshold.bits || (bits == threshold.bits && equal-- <= 0)) continue;
      message[next] = static_cast<std::int32_t>(i);
      message[kept + next] = std::bit_cast<std::int32_t>(from.residual[i]);
      from.residual[i] = from.velocity[i] = 0;
      ++next;
    }
  }

  ops::SparseSchedule schedule_;
  UpdatePieces<1> norm_;
  std::int64_t elements_;
  ValueId grad_, param_, velocity_, residual_, message_;
  double ranks_, limit_;
  Accumulation constants_;
  void (*accumulate_)(const Accumulation&, std::int64_t, std::int64_t);
};

class DgcScatter : public Kernel {
 public:
  explicit DgcScatter(const OpView& op)
      : schedule_(ops::sparse_schedule_of(op, count_of(op.input("grad").shape))),
        elements_(elements_of(op, op.input("grad"))),
        grad_(op.input_id("grad")),
        gathered_(op.input_id("gathered")),
        ranks_(op.integer("ranks")) {}

  void run(const RunContext& context) override {
    const std::int64_t kept = schedule_.kept_in(static_cast<std::int64_t>(context.step));
    if (kept == 0) return;
    float* const grad = at(context, grad_);
    const float share = 1.0F / static_cast<float>(ranks_);
    std::memset(grad, 0, static_cast<std::size_t>(elements_) * sizeof(float));
    const auto* message = at<std::int32_t>(context, gathered_);
    for (std::int64_t rank = 0; rank < ranks_; ++rank, message += 2 * kept)
      for (std::int64_t i = 0; i < kept; ++i)
        grad[message[i]] += share * std::bit_cast<float>(message[kept + i]);
  }

 private:
  ops::SparseSchedule schedule_;
  std::int64_t elements_;
  ValueId grad_, gathered_;
  std::int64_t ranks_;
};

FLEETRUN_VECTOR_LOOP void sgd_step_range(const float* grad, float rate, float* param, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) param[i] -= rate * grad[i];
}

class DgcMomentum : public Kernel {
 public:
  DgcMomentum(const OpView& op, Device& device)
      : momentum_(make_momentum(op, device)),
        pieces_(op, {"param", "grad"}),
        rate_(op.input_id("learning_rate")),
        begin_step_(static_cast<std::uint64_t>(op.integer("rampup_begin_step"))) {}

  void run(const RunContext& context) override {
    if (context.step < begin_step_) return momentum_->run(context);
    pieces_.parallel(context, [&](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      vector_clones<sgd_step_range>(data[1] + begin, *at(context, rate_), data[0] + begin, end - begin);
    });
  }

 private:
  std::unique_ptr<Kernel> momentum_;
  UpdatePieces<2> pieces_;
  ValueId rate_;
  std::uint64_t begin_step_;
};

std::unique_ptr<Kernel> make_dgc_momentum(const OpView& op, Device& device) {
  return std::make_unique<DgcMomentum>(op, device);
}

LayoutChoice choose_select(const LayoutQuery& query, Device&) { return like_input(query, "param"); }

}  // namespace

KernelDef dgc_select_kernel() { return {.choose_layouts = choose_select, .make = make_kernel<DgcSelect>}; }
KernelDef dgc_scatter_kernel() { return {.choose_layouts = as_they_lie, .make = make_kernel<DgcScatter>}; }
KernelDef dgc_momentum_kernel() { return {.choose_layouts = as_they_lie, .make = make_dgc_momentum}; }

}  // namespace fleetrun::runtime::cpu
