// Kernels that limit gradients: by value, by their own norms, and by the norm of all of them.
#include <cmath>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

FLEETRUN_VECTOR_LOOP void clip_range(float* grad, float limit, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float below = grad[i] > limit ? limit : grad[i];
    grad[i] = below < -limit ? -limit : below;
  }
}

FLEETRUN_VECTOR_LOOP void scale_range(float* grad, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) grad[i] *= factor;
}

TwoSums squares(std::size_t, const std::array<float*, 1>& data, std::int64_t begin, std::int64_t end) {
  return {.first = vector_clones<squares_of>(data[0] + begin, end - begin)};
}

std::unique_ptr<Kernel> make_clip_by_value(const OpView& op, Device&) {
  return simple_kernel([pieces = UpdatePieces<1>(op, {"grad"}),
                        limit = static_cast<float>(op.number("limit"))](const RunContext& context) {
    pieces.parallel(context, [&](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      vector_clones<clip_range>(data[0] + begin, limit, end - begin);
    });
  });
}

std::unique_ptr<Kernel> make_clip_by_norm(const OpView& op, Device&) {
  const UpdatePieces<1> pieces(op, {"grad"});
  return scratch_kernel(
      pieces.scratch_bytes(), [pieces, limit = op.number("limit")](const RunContext& context) {
        pieces.sum(context, squares);
        pieces.parallel(context, [&](std::size_t i, const auto& data, std::int64_t begin, std::int64_t end) {
          const double norm = std::sqrt(pieces.sums_of(context, i).first);
          if (!(norm <= limit))
            vector_clones<scale_range>(data[0] + begin, static_cast<float>(limit / norm), end - begin);
        });
      });
}

std::unique_ptr<Kernel> make_gradient_norms(const OpView& op, Device&) {
  const UpdatePieces<1> pieces(op, {"grad"});
  return scratch_kernel(pieces.scratch_bytes(), [pieces, first = op.integer("first"),
                                                 norms = op.input_id("norms")](const RunContext& context) {
    pieces.sum(context, squares);
    float* const to = at(context, norms) + first;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      to[i] = static_cast<float>(std::sqrt(pieces.sums_of(context, i).first));
  });
}

std::unique_ptr<Kernel> make_clip_by_global_norm(const OpView& op, Device&) {
  return simple_kernel([pieces = UpdatePieces<1>(op, {"grad"}), limit = op.number("limit"),
                        norms = op.input_id("norms"),
                        count = elements_of(op, op.input("norms"))](const RunContext& context) {
    const double norm = std::sqrt(squares_of(at(context, norms), count));
    if (norm <= limit) return;
    pieces.parallel(context, [&](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
      vector_clones<scale_range>(data[0] + begin, static_cast<float>(limit / norm), end - begin);
    });
  });
}

}  // namespace

KernelDef clip_by_value_kernel() { return {.choose_layouts = as_they_lie, .make = make_clip_by_value}; }
KernelDef clip_by_norm_kernel() { return {.choose_layouts = as_they_lie, .make = make_clip_by_norm}; }
KernelDef gradient_norms_kernel() { return {.choose_layouts = as_they_lie, .make = make_gradient_norms}; }
KernelDef clip_by_global_norm_kernel() {
  return {.choose_layouts = as_they_lie, .make = make_clip_by_global_norm};
}

}  // namespace fleetrun::runtime::cpu
