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

namespace {

struct Ownership {
  std::vector<int> owners;          // of each parameter
  std::vector<std::int64_t> owned;  // elements of each rank
};

Ownership divide(const std::vector<std::int64_t>& elements, int ranks) {
  Ownership result = {.owners = {}, .owned = std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 0)};
  auto& [owners, owned] = result;
  owners.reserve(elements.size());
  for (const std::int64_t count : elements) {
    const auto least = std::ranges::min_element(owned);
    owners.push_back(static_cast<int>(least - owned.begin()));
    *least += count;
  }
  return result;
}

}  // namespace

std::vector<int> choose_owners(const std::vector<std::int64_t>& elements, int ranks) {
  return divide(elements, ranks).owners;
}

int owner_of_most(const std::vector<std::int64_t>& elements, int ranks) {
  const std::vector<std::int64_t> owned = divide(elements, ranks).owned;
  return static_cast<int>(std::ranges::max_element(owned) - owned.begin());
}

}  // namespace fleetrun::runtime
