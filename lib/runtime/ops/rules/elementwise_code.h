// What the op elementwise_group does with each element, as a list of steps that people can read:
//   t0 = elementwise_add x0 x1; y0 = relu t0; y1 = scale t0 0.5 0
// x0, x1, ... are its inputs, y0, ... its outputs, t0, ... are seen by later steps only.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

constexpr int kGroupInputs = 8, kGroupOutputs = 4, kGroupSteps = 16;  // at most

struct ElementwisePlace {
  char kind = 't';  // x, y or t
  int index = 0;
  bool operator==(const ElementwisePlace&) const = default;
};

struct ElementwiseStep {
  std::string op;  // the op of a program that does the same with a whole tensor
  ElementwisePlace result;
  std::vector<ElementwisePlace> arguments;
  std::vector<double> numbers;
};
using ElementwiseCode = std::vector<ElementwiseStep>;

// An op whose elements do not look at each other.
struct ElementwiseOp {
  const char* op;
  std::vector<const char*> arguments;  // its inputs; it has one output
  std::vector<const char*> numbers;    // attributes
};
const ElementwiseOp* find_elementwise(std::string_view op);  // null: it is none

std::string print_elementwise_code(const ElementwiseCode& code);

// Throws Error(internal) that quotes a step with an unknown op or place, arguments that no step made, or too few of them.
ElementwiseCode parse_elementwise_code(const std::string& text);

}  // namespace fleetrun::runtime
