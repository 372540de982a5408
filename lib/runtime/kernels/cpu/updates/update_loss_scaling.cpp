#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

// Of the op; steps are counted in f32.
struct Scaling {
  float incr_every, decr_every, incr_ratio, decr_ratio;

  void after_overflow(float& scale, float& good, float& bad) const {
    good = 0;
    bad += 1;
    if (bad != decr_every) return;
    scale = std::max(scale * decr_ratio, 1.0F);
    bad = 0;
  }

  void after_good_step(float& scale, float& good, float& bad) const {
    bad = 0;
    good += 1;
    if (good != incr_every) return;
    const float larger = scale * incr_ratio;
    if (std::isfinite(larger)) scale = larger;
    good = 0;
  }
};

std::unique_ptr<Kernel> make_update(const OpView& op, Device&) {
  const auto number = [&](const char* name) { return static_cast<float>(op.number(name)); };
  const Scaling scaling = {number("incr_every_n_steps"), number("decr_every_n_nan_or_inf"),
                           number("incr_ratio"), number("decr_ratio")};
  return simple_kernel([scaling, found = op.input_id("found"), scale = op.input_id("scale"),
                        good = op.input_id("good"), bad = op.input_id("bad")](const RunContext& context) {
    if (*at(context, found) > 0)
      scaling.after_overflow(*at(context, scale), *at(context, good), *at(context, bad));
    else
      scaling.after_good_step(*at(context, scale), *at(context, good), *at(context, bad));
  });
}

}  // namespace

KernelDef update_loss_scaling_kernel() { return {.make = make_update}; }

}  // namespace fleetrun::runtime::cpu
