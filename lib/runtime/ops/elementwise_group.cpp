// Several ops that look at each element by itself, in one look at the tensors: what the pass auto_fusion makes.
//   y0, y1, ... = the steps of `code` (rules/elementwise_code.h) on x0, x1, ...       all f32 and of one shape
//   attributes: code
// Throws Error(config) when the shapes differ, or when code names an argument that is not there.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/ops/rules/elementwise_code.h"

namespace fleetrun::runtime::ops {
namespace {

std::vector<std::string> names(char kind, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(fmt::format("{}{}{}", kind, i, i == 0 ? "" : "?"));
  return all;
}

std::vector<std::pair<std::string, std::string>> every_output_in_place_of_every_input() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int y = 0; y < kGroupOutputs; ++y)
    for (int x = 0; x < kGroupInputs; ++x) pairs.emplace_back(fmt::format("y{}", y), fmt::format("x{}", x));
  return pairs;
}

void expect_argument(const OpView& op, const ElementwisePlace& place) {
  if (place.kind == 't') return;
  const std::string name = fmt::format("{}{}", place.kind, place.index);
  if (place.kind == 'x' ? !op.has_input(name) : !op.has_output(name))
    op.fail(fmt::format("code names {}, which is not there", name));
  if (place.kind == 'x' && op.input(name).shape != op.input("x0").shape)
    op.fail(fmt::format("{} is {}, x0 is {}; they must be alike", name, describe(op.input(name).shape),
                        describe(op.input("x0").shape)));
}

void infer_group(Inference& op) {
  for (const ElementwiseStep& step : parse_elementwise_code(op.text("code"))) {
    expect_argument(op, step.result);
    for (const ElementwisePlace& argument : step.arguments) expect_argument(op, argument);
    if (step.result.kind == 'y')
      op.set_output(fmt::format("y{}", step.result.index), op.input("x0").shape, op.input("x0").dtype);
  }
}

}  // namespace

OpDef elementwise_group() {
  return {.inputs = names('x', kGroupInputs),
          .outputs = names('y', kGroupOutputs),
          .infer = infer_group,
          .may_share = every_output_in_place_of_every_input()};
}

}  // namespace fleetrun::runtime::ops
