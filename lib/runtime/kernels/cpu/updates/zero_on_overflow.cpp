#include <algorithm>

#include "runtime/kernels/cpu/updates/update_pieces.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime::cpu {
namespace {

std::unique_ptr<Kernel> make_zero(const OpView& op, Device&) {
  return simple_kernel(
      [pieces = UpdatePieces<1>(op, {"grad"}), found = op.input_id("found")](const RunContext& context) {
        if (!(*at(context, found) > 0)) return;
        pieces.parallel(context, [](std::size_t, const auto& data, std::int64_t begin, std::int64_t end) {
          std::fill(data[0] + begin, data[0] + end, 0.0F);
        });
      });
}

}  // namespace

KernelDef zero_on_overflow_kernel() { return {.choose_layouts = as_they_lie, .make = make_zero}; }

}  // namespace fleetrun::runtime::cpu
