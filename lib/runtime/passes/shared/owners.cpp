#include "runtime/passes/shared/owners.h"

#include <algorithm>

namespace fleetrun::runtime {

std::vector<ValueId> parameters_by_gradient(const Program& program) {
  std::vector<ValueId> parameters;
  for (const Op& op : program.ops)
    for (const ValueId id : op.outputs)
      if (op.role == Role::backward && id != kNone && program.value(id).kind == ValueKind::gradient)
        parameters.push_back(program.value(id).of);
  return parameters;
}

std::vector<std::int64_t> elements_of(const Program& program, const std::vector<ValueId>& values) {
  std::vector<std::int64_t> elements;
  elements.reserve(values.size());
  for (const ValueId id : values) elements.push_back(count_of(program.value(id).shape));
  return elements;
}

std::vector<int> choose_owners(const std::vector<std::int64_t>& elements, int ranks) {
  std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks), 0);
  std::vector<int> owners;
  owners.reserve(elements.size());
  for (const std::int64_t count : elements) {
    const auto least = std::ranges::min_element(owned);
    owners.push_back(static_cast<int>(least - owned.begin()));
    *least += count;
  }
  return owners;
}

}  // namespace fleetrun::runtime
