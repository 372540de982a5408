#include "runtime/training/trainer/numerics.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

bool is_finite(const Storage& storage, const Value& value) {
  const std::vector<float> elements = storage.read(value.name);
  return std::ranges::all_of(elements, [](float element) { return std::isfinite(element); });
}

}  // namespace

std::string first_not_finite(const Program& program, const Storage& storage) {
  const std::vector<ValueId> parameters = program.of_kind(ValueKind::parameter);
  for (const ValueId id : parameters)
    if (!is_finite(storage, program.value(id))) return program.value(id).name;
  for (const ValueId id : parameters) {
    const ValueId gradient = program.gradient_of(id);
    if (gradient != kNone && !is_finite(storage, program.value(gradient)))
      return "the gradient of " + program.value(id).name;
  }
  return "";
}

std::string describe_number(double number) {
  return fmt::format("{}", std::isnan(number) ? std::abs(number) : number);
}

}  // namespace fleetrun::runtime
