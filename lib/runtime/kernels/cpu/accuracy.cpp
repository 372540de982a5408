#include <algorithm>

#include <fmt/format.h>

#include "runtime/kernels/cpu/labels.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::int64_t kTop = 5;

// How many classes are ahead of the label: a higher score, or the same at a lower index. Against NaN
// everything is ahead, so that a diverged model scores nothing.
std::int64_t rank_of(const float* scores, std::int64_t classes, std::int32_t label) {
  const float mine = scores[label];
  return std::count_if(scores, scores + label, [mine](float score) { return !(score < mine); }) +
         std::count_if(scores + label, scores + classes, [mine](float score) { return !(score <= mine); });
}

std::unique_ptr<Kernel> make_accuracy(const OpView& op, Device&) {
  const Shape& shape = op.input("x").shape;
  elements_of(op, op.input("x"));
  return simple_kernel([x = op.input_id("x"), label = op.input_id("label"), hits = op.output_id("hits"),
                        labels = Labels(op, shape)](const RunContext& context) {
    labels.check(at<std::int32_t>(context, label));
    float top1 = 0, top5 = 0, counted = 0;
    for (std::int64_t row = 0; row < labels.rows; ++row) {
      const std::int32_t wanted = at<std::int32_t>(context, label)[row];
      if (wanted < 0) continue;
      const std::int64_t rank = rank_of(at(context, x) + row * labels.classes, labels.classes, wanted);
      top1 += rank < 1 ? 1.0F : 0.0F;
      top5 += rank < kTop ? 1.0F : 0.0F;
      counted += 1.0F;
    }
    float* result = at(context, hits);
    result[0] = top1, result[1] = top5, result[2] = counted;
  });
}

}  // namespace

KernelDef accuracy_kernel() { return {.make = make_accuracy}; }

}  // namespace fleetrun::runtime::cpu
