#include "runtime/graph/program.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::runtime {

std::string_view describe(ValueKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"feed", "parameter", "state", "gradient", "activation"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view describe(Role role) {
  constexpr std::array<std::string_view, 4> kNames = {"forward", "backward", "communication", "optimize"};
  return kNames.at(static_cast<std::size_t>(role));
}

std::string_view describe(Init::How how) {
  constexpr std::array<std::string_view, 3> kNames = {"constant", "uniform", "normal"};
  return kNames.at(static_cast<std::size_t>(how));
}

std::size_t Value::bytes() const {
  return layout.plain() ? static_cast<std::size_t>(count_of(shape)) * size_of(dtype) : layout.bytes;
}

ValueId Program::add_value(Value value) {
  if (find(value.name) != kNone)
    throw Error(ErrorKind::internal, fmt::format("two values of the program are named {}", value.name));
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Program::find(std::string_view name) const {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const Value& value) { return value.name == name; });
  return found == values.end() ? kNone : static_cast<ValueId>(found - values.begin());
}

std::vector<ValueId> Program::of_kind(ValueKind kind) const {
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].kind == kind) ids.push_back(static_cast<ValueId>(i));
  return ids;
}

ValueId Program::gradient_of(ValueId parameter) const {
  for (const ValueId id : of_kind(ValueKind::gradient))
    if (value(id).of == parameter) return id;
  return kNone;
}

}  // namespace fleetrun::runtime
