#include <algorithm>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/narrow.h"
#include "runtime/kernels/cpu/onednn/descriptors.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void add_range(const float* grad, float* merged, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) merged[i] += grad[i];
}

FLEETRUN_VECTOR_LOOP void hand_over_range(float* merged, float* out, float scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = merged[i] * scale;
    merged[i] = 0;
  }
}

class MergeGradient : public Kernel {
 public:
  explicit MergeGradient(const OpView& op)
      : grad_(op.input_id("grad")),
        merged_(op.input_id("merged")),
        out_(op.output_id("out")),
        count_(elements_of(op, op.input("merged"))),
        steps_(static_cast<std::uint64_t>(op.integer("k_steps"))),
        scale_(static_cast<float>(op.number("scale"))),
        is_narrow_(op.input("grad").dtype == DType::bf16) {}

  void run(const RunContext& context) override {
    const bool hands_over = (context.merge_step + 1) % steps_ == 0;
    parallel_for(count_, kElementsPerThread, [&](std::int64_t begin, std::int64_t end) {
      if (is_narrow_) return merge_narrow(context, begin, end, hands_over);
      float* const merged = at(context, merged_) + begin;
      vector_clones<add_range>(at(context, grad_) + begin, merged, end - begin);
      if (hands_over) vector_clones<hand_over_range>(merged, at(context, out_) + begin, scale_, end - begin);
    });
  }

 private:
  void merge_narrow(const RunContext& context, std::int64_t begin, std::int64_t end, bool hands_over) const {
    constexpr std::int64_t kStretch = 1024;  // 4 KiB as f32
    alignas(64) float wide[kStretch];
    for (; begin < end; begin += kStretch) {
      const std::int64_t count = std::min(kStretch, end - begin);
      float* const merged = at(context, merged_) + begin;
      widen(at<Bf16>(context, grad_) + begin, wide, count);
      vector_clones<add_range>(wide, merged, count);
      if (!hands_over) continue;
      vector_clones<hand_over_range>(merged, wide, scale_, count);
      narrow(wide, at<Bf16>(context, out_) + begin, count);
    }
  }

  ValueId grad_, merged_, out_;
  std::int64_t count_;
  std::uint64_t steps_;
  float scale_;
  bool is_narrow_;
};

// All as the sum lies, which lies as the parameter.
LayoutChoice choose_merge(const LayoutQuery& query, Device&) {
  const Value& merged = query.op.input("merged");
  const Layout narrow_or_wide = layout_in(merged, query.op.input("grad").dtype);
  return {{narrow_or_wide, merged.layout}, {narrow_or_wide, merged.layout}};
}

}  // namespace

KernelDef merge_gradient_kernel() {
  return {.choose_layouts = choose_merge, .make = make_kernel<MergeGradient>};
}

}  // namespace fleetrun::runtime::cpu
