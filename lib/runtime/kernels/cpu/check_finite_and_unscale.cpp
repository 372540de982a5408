#include <atomic>
#include <cmath>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/cpu_device.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/cpu/update_pieces.h"

namespace fleetrun::runtime::cpu {
namespace {

// A number times 0 is 0, anything else is not: sums of that need no branch. Returns whether all are numbers.
FLEETRUN_VECTOR_CLONES bool unscale_all(const float* x, float* out, float inverse, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  float odd[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = x[i + lane];
      odd[lane] += value * 0.0F;
      out[i + lane] = value * inverse;
    }
  for (; i < count; ++i) {
    odd[0] += x[i] * 0.0F;
    out[i] = x[i] * inverse;
  }
  float sum = 0;
  for (const float lane : odd) sum += lane;
  return sum == 0.0F;
}

class Check : public Kernel {
 public:
  explicit Check(const OpView& op) : scale_(op.input_id("scale")), found_(op.input_id("found")) {
    const auto x = op.input_ids("x"), out = op.output_ids("out");
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Value& value = op.program().value(x[i]);
      gradients_.push_back({x[i], out[i], wide_or_narrow_elements(op, value), value.dtype == DType::bf16});
    }
  }

  void run(const RunContext& context) override {
    const float inverse = 1.0F / *at(context, scale_);
    std::atomic<bool> numbers = true;
    for (const Gradient& gradient : gradients_)
      parallel_for(gradient.count, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
        if (!unscale(context, gradient, inverse, begin, end)) numbers = false;
      });
    if (!numbers) *at(context, found_) = 1;
  }

 private:
  struct Gradient {
    ValueId x, out;
    std::int64_t count;
    bool is_narrow;
  };

  static bool unscale(const RunContext& context, const Gradient& gradient, float inverse, std::int64_t begin,
                      std::int64_t end) {
    float* const out = at(context, gradient.out);
    if (!gradient.is_narrow)
      return unscale_all(at(context, gradient.x) + begin, out + begin, inverse, end - begin);
    constexpr std::int64_t kPiece = 1024;
    bool numbers = true;
    for (; begin < end; begin += kPiece) {
      const std::int64_t count = std::min(kPiece, end - begin);
      widen(at<Bf16>(context, gradient.x) + begin, out + begin, count);
      numbers = unscale_all(out + begin, out + begin, inverse, count) && numbers;
    }
    return numbers;
  }

  std::vector<Gradient> gradients_;
  ValueId scale_, found_;
};

// Each as it lies, in f32.
LayoutChoice choose_check(const LayoutQuery& query, Device&) {
  const OpView& op = query.op;
  LayoutChoice choice = {std::vector<Layout>(op.op().inputs.size()),
                         std::vector<Layout>(op.op().outputs.size())};
  const auto x = op.input_ids("x");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Value& value = op.program().value(x[i]);
    choice.inputs[i] = value.layout;
    choice.outputs[i] = layout_in(value, DType::f32);
  }
  return choice;
}

}  // namespace

KernelDef check_finite_and_unscale_kernel() {
  return {.choose_layouts = choose_check, .make = make_kernel<Check>};
}

}  // namespace fleetrun::runtime::cpu
