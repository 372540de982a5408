#include "runtime/ops/rules/labels.h"

#include <fmt/format.h>

namespace fleetrun::runtime::ops {

void expect_scores_and_labels(const OpView& op, std::string_view scores) {
  const Shape& x = op.input(scores).shape;
  const Value& label = op.input("label");
  if (x.size() != 2) op.fail(fmt::format("{} is {}, wanted [N, classes]", scores, describe(x)));
  if (label.shape != Shape{x[0]} || label.dtype != DType::i32)
    op.fail(fmt::format("label is {} {}, wanted i32 [{}] for {} {}", describe(label.dtype),
                        describe(label.shape), x[0], scores, describe(x)));
}

}  // namespace fleetrun::runtime::ops
