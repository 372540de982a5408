#include "runtime/ops/rules/elementwise_code.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

const std::vector<ElementwiseOp>& elementwise_ops() {
  static const std::vector<ElementwiseOp> table = {
      {"elementwise_add", {"x", "y"}, {}},
      {"relu", {"x"}, {}},
      {"relu_grad", {"y", "dy"}, {}},
      {"relu6", {"x"}, {"threshold"}},
      {"relu6_grad", {"y", "dy"}, {"threshold"}},
      {"scale", {"x"}, {"scale", "bias"}},
  };
  return table;
}

class Parser {
 public:
  ElementwiseCode parse(const std::string& text) {
    std::istringstream steps(text);
    for (std::string step; std::getline(steps, step, ';');) read(step);
    if (code_.empty()) fail("nothing");
    return std::move(code_);
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw Error(
        ErrorKind::internal,
        fmt::format("found \"{}\" in the steps of an elementwise_group, wanted \"y0 = op x0 ...\"", found));
  }

  void read(const std::string& text) {
    std::istringstream words(text);
    std::string result, equals;
    ElementwiseStep step;
    words >> result >> equals >> step.op;
    const ElementwiseOp* const op = find_elementwise(step.op);
    if (equals != "=" || op == nullptr || static_cast<int>(code_.size()) == kGroupSteps) fail(text);
    step.result = place(result, text);
    if (step.result.kind == 'x' || known(step.result)) fail(text);
    std::string word;
    for (std::size_t i = 0; i < op->arguments.size(); ++i) {
      words >> word;
      step.arguments.push_back(place(word, text));
      if (step.arguments.back().kind != 'x' && !known(step.arguments.back())) fail(text);
      word.clear();
    }
    for (std::size_t i = 0; i < op->numbers.size(); ++i) {
      words >> word;
      step.numbers.push_back(number(word, text));
      word.clear();
    }
    if (words >> word) fail(text);
    code_.push_back(std::move(step));
  }

  ElementwisePlace place(const std::string& word, const std::string& step) const {
    ElementwisePlace found = {.kind = word.empty() ? ' ' : word.front()};
    const char* const end = word.data() + word.size();
    const int most = found.kind == 'x' ? kGroupInputs : found.kind == 'y' ? kGroupOutputs : kGroupSteps;
    const bool right = (found.kind == 'x' || found.kind == 'y' || found.kind == 't') &&
                       std::from_chars(word.data() + 1, end, found.index).ptr == end && word.size() > 1 &&
                       found.index >= 0 && found.index < most;
    if (!right) fail(step);
    return found;
  }

  double number(const std::string& word, const std::string& step) const {
    double value = 0;
    const char* const end = word.data() + word.size();
    if (word.empty() || std::from_chars(word.data(), end, value).ptr != end) fail(step);
    return value;
  }

  bool known(const ElementwisePlace& place) const {
    return std::any_of(code_.begin(), code_.end(), [&](const auto& step) { return step.result == place; });
  }

  ElementwiseCode code_;
};

}  // namespace

const ElementwiseOp* find_elementwise(std::string_view op) {
  for (const ElementwiseOp& known : elementwise_ops())
    if (known.op == op) return &known;
  return nullptr;
}

std::string print_elementwise_code(const ElementwiseCode& code) {
  std::string text;
  for (const ElementwiseStep& step : code) {
    text +=
        fmt::format("{}{}{} = {}", text.empty() ? "" : "; ", step.result.kind, step.result.index, step.op);
    for (const ElementwisePlace& argument : step.arguments)
      text += fmt::format(" {}{}", argument.kind, argument.index);
    for (const double number : step.numbers) text += fmt::format(" {}", number);
  }
  return text;
}

ElementwiseCode parse_elementwise_code(const std::string& text) { return Parser().parse(text); }

}  // namespace fleetrun::runtime
