#include <atomic>
#include <bit>

#include "base/number/half.h"
#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"

namespace fleetrun::runtime::cpu {
namespace {

float wide(float element) { return element; }
float wide(Bf16 element) { return bf16_to_f32(element); }

// Returns whether all are numbers: adding 1 to the exponent of anything else carries into the sign. `out` may be x.
template <typename T>
inline __attribute__((always_inline)) bool unscale_body(const T* x, float* out, float inverse,
                                                        std::int64_t count) {
  std::uint32_t carried = 0;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = wide(x[i]);
    carried |= (std::bit_cast<std::uint32_t>(value) & 0x7fffffffU) + 0x800000U;
    out[i] = value * inverse;
  }
  return carried >> 31 == 0;
}

FLEETRUN_VECTOR_LOOP bool unscale_wide(const float* x, float* out, float inverse, std::int64_t count) {
  return unscale_body(x, out, inverse, count);
}

FLEETRUN_VECTOR_LOOP bool unscale_narrow(const Bf16* x, float* out, float inverse, std::int64_t count) {
  return unscale_body(x, out, inverse, count);
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
    float* const out = at(context, gradient.out) + begin;
    if (gradient.is_narrow)
      return vector_clones<unscale_narrow>(at<Bf16>(context, gradient.x) + begin, out, inverse, end - begin);
    return vector_clones<unscale_wide>(at(context, gradient.x) + begin, out, inverse, end - begin);
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
